"""Which trackers a run is written to: those of the spec, or those that a command names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentc.backend_api import Tracker, installed_trackers
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.ir.module import Tracking
from agentc.kinds.field import SECRET, Json
from agentc.runtime.software.job_software import trouble_of_secret
from agentc.software.requirements import Needed, needed_by_tracker

NONE = "none"
"""What `--track` is given to leave out those of the spec."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenTracker:
    """A tracker with its settings, of which secrets are names: variable of the program -> name."""

    tracker: Tracker
    settings: Mapping[str, Json]
    secrets: Mapping[str, str]

    @property
    def needed(self) -> Needed:
        """Its software stack."""
        return needed_by_tracker(self.tracker)


def choose_trackers(
    written: Iterable[Tracking], named: str | None, sink: Sink, directory: Path = Path()
) -> tuple[ChosenTracker, ...]:
    """`written` are those of the spec, `named` what `--track` was given, with commas: it takes
    their place, and their settings hold for those that it names, too. Unknown ones are errors.
    Folders are those of the spec's `directory`, unless they are absolute."""
    known = installed_trackers()
    of_spec = {each.tracker: each for each in written}
    words = [word.strip() for word in (named or "").split(",") if word.strip()]
    names = list(of_spec) if named is None else [word for word in words if word != NONE]
    found = []
    for name in dict.fromkeys(names):
        if name not in known:
            sink.error(
                "AGC760",
                f"no tracker `{name}`",
                expected=f"one of {listed(known)}, or `{NONE}`",
                fix=did_you_mean(name, known),
            )
            continue
        given = of_spec[name].settings if name in of_spec else {}
        found.append(_chosen(known[name], given, directory))
    return tuple(found)


def report_missing_secrets(
    chosen: Iterable[ChosenTracker], environment: Mapping[str, str], sink: Sink
) -> None:
    """AGC321 for each secret of a tracker that the environment does not have: it is said before
    anything runs, since the tracker alone would say it later, and end no run."""
    for one in chosen:
        for setting, variable in one.tracker.secrets.items():
            name = one.secrets.get(variable)
            if name is None:
                continue
            value = environment.get(name)
            trouble = trouble_of_secret(value, sent=True) if value else "is not set"
            if trouble is not None:
                sink.error(
                    "AGC321",
                    f"the secret {name} {trouble}",
                    notes=(f"`{setting}` of the tracker {one.tracker.id} refers to it",),
                    fix=f"export {name}=... in this shell, or run with `--track {NONE}`",
                )


def _chosen(tracker: Tracker, given: Mapping[str, Json], directory: Path) -> ChosenTracker:
    secrets = {}
    for setting, variable in tracker.secrets.items():
        reference = given.get(setting)
        if isinstance(reference, dict):
            secrets[variable] = str(reference[SECRET])
    plain = {name: value for name, value in given.items() if name not in tracker.secrets}
    for setting, path in tracker.written_to(plain).items():
        place = (directory / Path(path).expanduser()).absolute()
        plain[setting] = str(plain[setting]).removesuffix(path) + str(place)
    return ChosenTracker(tracker=tracker, settings=plain, secrets=secrets)
