"""What lowering must be: complete, pure, the same everywhere, and honest about identity."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from agentc.backend_api import StageBackend
from agentc.backend_api.table import load_backends
from agentc.conformance.bench import TESTED, LoweringOutcome
from agentc.conformance.check import Skipped, demand
from agentc.conformance.declaration import ask_elsewhere
from agentc.conformance.subject import BackendUnderTest
from agentc.kinds import kind_named


def check_lowers(subject: BackendUnderTest) -> None:
    """With what its kind's stages set, the backend gives jobs, the last one the stage's."""
    outcome = _lowered(subject)
    backend = subject.backend
    if not isinstance(backend, StageBackend):
        return
    kind = kind_named(backend.kind)
    assert kind is not None
    last = outcome.jobs[-1]
    demand(last.id == TESTED, f"the last job is called {last.id!r}; it is the one without a `name`")
    made, yields = last.draft.produces, kind.product(subject.start.get(kind.product_setting)).name
    demand(made == yields, f"the last job produces {made}; a `{kind.name}` yields {yields}")
    of = last.draft.backend
    demand(of == backend.id, f"the last job says that it is of {of}")
    # An earlier one may be another backend's: its result is shared then.
    known = {**subject.bench.table.backends, backend.id: backend}
    for of, version in ((job.draft.backend, job.draft.version) for job in outcome.jobs):
        whose = known.get(of)
        demand(whose is not None, f"a job says that it is of {of}, which is not installed")
        demand(
            whose is not None and version == whose.version,
            f"a job says version {version} of {of}, which has another: raising the "
            "backend's version would change no key",
        )


def check_pure(subject: BackendUnderTest) -> None:
    """Lowering twice gives the same, and leaves the settings as they were."""
    start = subject.start
    given = copy.deepcopy(start)
    first, second = _lowered(subject), subject.lower(start)
    demand(start == given, "lowering changes the settings that it was given")
    demand(first.text() == second.text(), f"lowering twice differs: {_difference(first, second)}")


def check_same_everywhere(subject: BackendUnderTest) -> None:
    """Another process, with another hash seed and working directory, gives the same jobs."""
    here = _lowered(subject)
    if subject.backend is not load_backends().backends.get(subject.backend.id):
        raise Skipped("the backend is not installed")
    [there] = ask_elsewhere(lowering_asked(subject))
    demand(
        there["text"] == here.text(),
        "lowering gives other jobs in another process: something depends on the order of a set, "
        "the time, the working directory or the machine",
    )


def lowering_asked(subject: BackendUnderTest) -> dict[str, Any]:
    """What `agentc.conformance.elsewhere` is asked, to lower the plain stage."""
    return {
        "lower": subject.backend.id,
        "values": subject.start,
        "directory": str(subject.bench.directory.absolute()),
    }


def check_inputs(subject: BackendUnderTest) -> None:
    """Every input that the kind demands reaches a job; the optional ones may be absent."""
    backend = subject.backend
    assert isinstance(backend, StageBackend)
    kind = kind_named(backend.kind)
    assert kind is not None
    used = {role for job in _lowered(subject).jobs for role in job.draft.inputs}
    # Of those that it says it takes, where inputs exclude each other, some may be left out too.
    named = backend.inputs or ()
    needed = [role.name for role in kind.roles if not role.optional or role.name in named]
    lost = [name for name in needed if name not in used]
    demand(not lost, f"no job takes the input {', '.join(lost)}")
    optional = [role.name for role in kind.roles if role.optional]
    without = subject.lower(subject.start, without=optional) if optional else None
    demand(
        without is None or "AGC605" not in without.codes,
        f"without {', '.join(optional)} lowering raises "
        f"({'' if without is None else without.complaints()}); refuse, or do without",
    )


def check_neighbours(subject: BackendUnderTest) -> None:
    """What a job is told of prompt, environment and server enters its key."""
    backend = subject.backend
    assert isinstance(backend, StageBackend)
    before = _lowered(subject)
    changed: Mapping[str, Mapping[str, Any]] = {
        "prompt": {"instruction": "Do otherwise."},
        "environment": {"environment": "spicy"},
        "server": {"server": "spicy"},
    }
    kind = kind_named(backend.kind)
    assert kind is not None
    for name in kind.uses:
        after = subject.lower(subject.start, **changed[name])
        demand(not after.codes, f"another {name} is refused: {after.complaints()}")
        written, keyed = after.written != before.written, after.keys[-1:] != before.keys[-1:]
        demand(
            written == keyed,
            f"another {name} changes "
            + ("what the job is told, and not its key" if written else "the key for nothing"),
        )


def _lowered(subject: BackendUnderTest) -> LoweringOutcome:
    outcome = subject.lower(subject.start)
    demand(
        not outcome.codes,
        f"it does not lower with {subject.start}: {outcome.complaints()} "
        "(give the kit what it needs to start from)",
    )
    demand(bool(outcome.jobs), "lowering gives no job")
    return outcome


def _difference(one: LoweringOutcome, other: LoweringOutcome) -> str:
    for left, right in zip(one.written, other.written, strict=False):
        for name in left:
            if left[name] != right.get(name):
                return f"{name}: {left[name]!r}, then {right.get(name)!r}"
    return f"keys {one.keys}, then {other.keys}"
