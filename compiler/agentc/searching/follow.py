"""From trial to trial: what is proposed is run, round by round where there is a pruner, and told.

`agentc.cli.search` says how a trial is compiled and run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from agentc.exit_codes import EXIT_DONE, EXIT_FAILED
from agentc.ir.search import Search
from agentc.kinds.field import Json
from agentc.searching.objective import Measured
from agentc.searching.study import Study
from agentc.text import some

MOST_FAILURES = 3
"""So many trials in a row may fail: then it is not their values that are at fault."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why the spec cannot be compiled with the values of a trial."""

    why: str


class SearchScene(Protocol):
    """How a trial is compiled, run and measured."""

    def measures(self, params: Mapping[str, Json]) -> tuple[Measured, ...] | Refused: ...

    def run(self, params: Mapping[str, Json], until: str) -> int: ...

    def failed(self, params: Mapping[str, Json]) -> tuple[str, ...]:
        """The jobs of the last run whose own record says that they failed."""
        ...

    def value(self, params: Mapping[str, Json], measured: Measured) -> float | None: ...


def follow(search: Search, study: Study, scene: SearchScene, tell: Callable[[str], None]) -> int:
    """Try values until there are `search.trials` trials; the exit code. A run that ends by anything
    but its jobs (Ctrl-C, a full disk, a budget, a Snakemake that was killed) ends the search with
    it: its trial is continued by the next search."""
    failures = 0
    while study.finished < search.trials:
        number, params = study.ask()
        tell(f"trial {number + 1} of {search.trials}: {format_params(params)}")
        code = _try(search, study, scene, number, params)
        if code == EXIT_FAILED:
            tell(
                f"trial {number + 1} stays open: its run ended, and no job of it says that it "
                "failed, so its values are not at fault; run the search again to continue it"
            )
        if code != EXIT_DONE:
            return code
        trial = study.trials[number]
        failures = failures + 1 if trial.state == "failed" else 0
        value = "" if trial.value is None else f", {search.metric} {trial.value:.4g}"
        why = f": {trial.why}" if trial.why else ""
        tell(f"trial {number + 1}: {trial.state}{value}{why}")
        if failures == MOST_FAILURES and study.finished < search.trials:
            tell(f"{failures} trials in a row failed: the search ends; run it again to continue")
            return EXIT_FAILED
    return EXIT_DONE


def format_params(params: Mapping[str, Json]) -> str:
    """`lr=0.001 beta=0.1`, numbers with four digits: for people."""
    return " ".join(f"{name}={format_value(value)}" for name, value in params.items())


def format_value(value: Json) -> str:
    """A value with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _try(
    search: Search, study: Study, scene: SearchScene, number: int, params: Mapping[str, Json]
) -> int:
    """Run one trial and tell the study. Not 0: the search cannot go on, and the trial is open."""
    measures = scene.measures(params)
    if isinstance(measures, Refused):
        study.tell(number, "failed", None, measures.why)
        return EXIT_DONE
    if not measures:
        why = f"its plan has no stage `{search.stage}` that measures anything"
        study.tell(number, "failed", None, why)
        return EXIT_DONE
    # Without a pruner nobody asks between rounds, and jobs of later rounds need not wait.
    for measured in measures if search.pruner != "none" else measures[-1:]:
        code = scene.run(params, measured.stage)
        failed = scene.failed(params) if code == EXIT_FAILED else ()
        if failed:
            study.tell(number, "failed", None, f"{some(failed, 2)} failed")
            return EXIT_DONE
        if code != EXIT_DONE:
            return code
        value = scene.value(params, measured)
        if value is None:
            why = f"`{measured.stage}` has no {search.metric}"
            study.tell(number, "failed", None, why)
            return EXIT_DONE
        last = measured is measures[-1]
        if measured.round and study.report(number, measured.round, value) and not last:
            others = "the median" if search.pruner == "median" else "the better half"
            why = f"after round {measured.round} of {measures[-1].round} worse than {others}"
            study.tell(number, "pruned", None, why)
            return EXIT_DONE
    study.tell(number, "complete", value)
    return EXIT_DONE
