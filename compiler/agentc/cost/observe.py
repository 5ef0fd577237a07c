"""observe: reads the manifests of stores and learns from them what `History` holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from agentc.cost.amounts import Piece, Rows, Settled, Workload, measured_fact
from agentc.cost.past import History, Past
from agentc.cost.quantities import Quantity
from agentc.cost.seconds import program_time, server_start, time_traits
from agentc.cost.statements import Stated
from agentc.cost.subject import JobProfile, subject_of_manifest
from agentc.cost.workload import Forecaster
from agentc.kinds.table import ACTING, ON_TASKS, TRAINERS
from agentc.lease_roles import is_model_server
from agentc.runtime.store.layout import MANIFEST, StoreLayout

MOST = 150
"""Manifests of a kind that are read from a store, the latest: more would tell little and take
long."""


def read_past(
    stores: Iterable[StoreLayout],
    kinds: Collection[str],
    most: int = MOST,
) -> dict[str, JobProfile]:
    """Finished jobs of those kinds by object, oldest first. A manifest that cannot be read counts
    as none: an estimate is no place to fail."""
    found: list[tuple[float, JobProfile]] = []
    for store in stores:
        for kind in sorted(kinds):
            for folder in _latest(store.root / "objects" / kind, most):
                subject = read_subject(folder)
                if subject is not None:
                    found.append((float(subject.measured.get("started") or 0), subject))
    found.sort(key=lambda pair: pair[0])
    return {subject.object: subject for _, subject in found}


def read_subject(folder: Path) -> JobProfile | None:
    """The job that made an object, or None."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return subject_of_manifest(manifest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def learn(
    subjects: Mapping[str, JobProfile],
    stores: Iterable[StoreLayout],
    stated: Stated,
) -> History:
    """Samples of all that those jobs measured, against what the prior says."""
    history = History()
    layouts = tuple(stores)
    for subject in subjects.values():
        with suppress(TypeError, ValueError):
            # Facts of environments and models, whatever computed.
            for past in (history.cpu, history.gpu):
                _observe_tasks(past, subject)
                _observe_size(past, subject)

    def settle(subject: JobProfile, piece: Piece) -> Settled:
        # What follows from a guess is compared with what follows from the truth.
        actual = _actual(piece, subject, forecaster, layouts, subjects)
        history.of(subject.machine.is_gpu).observe(
            piece.name, piece.backend, actual, piece.prior, piece.traits,
            subject.object, subject.alike,
        )  # fmt: skip
        return Settled(piece.prior if actual is None else Quantity(actual))

    forecaster = Forecaster(finder(subjects, layouts), history.cpu, stated, settle)
    for subject in subjects.values():
        # Manifests are read from a disk; one of an odd shape teaches nothing.
        with suppress(TypeError, ValueError, KeyError, AttributeError, ArithmeticError):
            past = history.of(subject.machine.is_gpu)
            _observe_time(past, subject, forecaster.workload(subject))
    return history


def finder(
    subjects: Mapping[str, JobProfile], stores: Iterable[StoreLayout]
) -> Callable[[str], JobProfile | None]:
    """Looks objects up among those read, else in the stores."""
    layouts = tuple(stores)
    read: dict[str, JobProfile | None] = {}

    def find(name: str) -> JobProfile | None:
        if name in subjects:
            return subjects[name]
        if name not in read:
            made = (read_subject(layout.object(name)) for layout in layouts)
            read[name] = next((each for each in made if each is not None), None)
        return read[name]

    return find


def actual_wall(subject: JobProfile) -> float | None:
    """Seconds that a job which ran in one go takes on an idle machine; None for one that was
    resumed or tried again."""
    manifest = subject.measured
    resumed = (manifest.get("facts") or {}).get("resumed")
    wall = manifest.get("wall_s")
    if manifest.get("attempts") not in (None, 1) or resumed or not isinstance(wall, (int, float)):
        return None
    return float(wall) * idle_share(subject)


def idle_share(subject: JobProfile) -> float:
    """The share of a job's time that it would have taken on an idle machine. What computes on CPUs
    never takes longer than its CPU seconds there; what waits for a network or a GPU may."""
    manifest = subject.measured
    leases = [each for each in manifest.get("leases") or () if isinstance(each, dict)]
    wall = manifest.get("wall_s")
    waits = subject.machine.is_gpu or subject.forecast == "unknown" or subject.config.get("repo")
    waits = waits or any(is_model_server(role) and not server.own
                         for role, server in subject.servers.items())  # fmt: skip
    computed = [manifest.get("cpu_s"), *(lease.get("cpu_s", 0.0) for lease in leases)]
    if waits or not isinstance(wall, (int, float)) or wall <= 0:
        return 1.0
    if not all(isinstance(each, (int, float)) for each in computed) or not computed[0]:
        return 1.0
    return float(min(1.0, sum(computed) / wall))


def _observe_size(past: Past, subject: JobProfile) -> None:
    repo, revision = subject.config.get("repo"), subject.config.get("revision")
    count = (subject.measured.get("facts") or {}).get("parameters")
    if isinstance(repo, str) and isinstance(count, (int, float)) and count > 0:
        past.parameters[repo, str(revision)] = float(count)


def _observe_tasks(past: Past, subject: JobProfile) -> None:
    facts = subject.measured.get("facts") or {}
    server = subject.servers.get("environment")
    attempts = subject.number("attempts", 1)
    episodes = facts.get(subject.counts.made)
    if subject.kind not in ON_TASKS or server is None or not isinstance(episodes, (int, float)):
        return
    if subject.setting("limit") is not None:
        return
    if subject.kind not in ACTING and subject.setting("max_turns") is not None:
        return  # it leaves tasks out
    split = str(subject.setting("split") or subject.config.get("split") or "")
    counts = past.tasks.setdefault((server.backend, server.identity, split), {})
    counts[subject.object] = (episodes + (facts.get("left_out") or 0)) / attempts


def _observe_time(past: Past, subject: JobProfile, work: Workload) -> None:
    if actual_wall(subject) is None:
        return
    manifest, idle = subject.measured, idle_share(subject)
    program = manifest.get("program_s")
    # Without the model that was trained or served nothing can be said of speed.
    blind = work.model is None and (subject.kind in TRAINERS or "model" in subject.inputs)
    if isinstance(program, (int, float)) and program > 0 and not blind:
        guess = program_time(subject, work)
        past.observe(
            "seconds",
            subject.backend,
            float(program) * idle,
            Quantity(guess.seconds.median, guess.rate_spread),
            time_traits(subject, work),
            subject.object,
            subject.alike,
        )
    for lease in manifest.get("leases") or ():
        server, ready = subject.servers.get(str(lease.get("role"))), lease.get("ready_s")
        if server is not None and isinstance(ready, (int, float)) and ready > 0:
            start = server_start(server, subject.machine, work)
            past.observe(
                "start",
                server.backend,
                float(ready) * idle,
                start,
                {"machine": subject.machine.kind},
                subject.object,
                subject.alike,
            )


def _actual(
    piece: Piece,
    subject: JobProfile,
    forecaster: Forecaster,
    stores: tuple[StoreLayout, ...],
    subjects: Mapping[str, JobProfile],
) -> float | None:
    """What became of a guess, or None where it was not measured."""
    facts = subject.measured.get("facts") or {}

    match piece.name:
        case "paired":
            explored = [subjects[n] for n in subject.inputs.get("rollouts", ()) if n in subjects]
            outputs = [forecaster.workload(each).output for each in explored]
            episodes = sum(each.count.median for each in outputs if isinstance(each, Rows))
            pairs = facts.get("pairs")
            return pairs / episodes if isinstance(pairs, (int, float)) and episodes else None
        case "disk":
            return _size(subject.object, stores)
    return measured_fact(piece.name, subject)


def _size(name: str, stores: tuple[StoreLayout, ...]) -> float | None:
    for store in stores:
        folder = store.data(name)
        try:
            return float(sum(path.stat().st_size for path in folder.iterdir())) or None
        except OSError:
            continue
    return None


def _latest(folder: Path, most: int) -> list[Path]:
    try:
        found = [(entry.stat().st_mtime, entry) for entry in folder.iterdir()]
    except OSError:
        return []
    return [path for _, path in sorted(found)[-most:]]
