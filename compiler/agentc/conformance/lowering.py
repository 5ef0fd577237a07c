"""What lowering must be: complete, pure, the same everywhere, and honest about identity. Flipping a
setting changes what the job receives, and its key if it is semantic; or it is refused with the
names of backends that honour it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentc.backend_api import StageBackend
from agentc.backend_api.table import load_backends
from agentc.conformance.bench import TESTED, LoweringOutcome
from agentc.conformance.check import Fault, Skipped, demand
from agentc.conformance.declaration import ask_elsewhere
from agentc.conformance.subject import BackendUnderTest, leaves, value_at, with_value
from agentc.ir.module import PLACEHOLDER
from agentc.kinds import kind_named
from agentc.kinds.field import Field
from agentc.plan.render import record


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
    [there] = ask_elsewhere(lowering_request(subject))
    demand(
        there["text"] == here.text(),
        "lowering gives other jobs in another process: something depends on the order of a set, "
        "the time, the working directory or the machine",
    )


def lowering_request(subject: BackendUnderTest) -> dict[str, Any]:
    """What `agentc.conformance.elsewhere` is asked, to lower the plain stage."""
    return {
        "lower": subject.backend.id,
        "values": subject.start,
        "directory": str(subject.bench.directory.absolute()),
    }


def check_inputs(subject: BackendUnderTest) -> None:
    """Every input that the kind demands reaches a job; the optional ones may be absent. Nothing but
    the inputs of jobs holds what the view has for one: stages of other names share it."""
    backend, outcome = subject.backend, _lowered(subject)
    assert isinstance(backend, StageBackend)
    kind = kind_named(backend.kind)
    assert kind is not None
    for job in outcome.jobs:
        demand(
            PLACEHOLDER not in repr(record(job)),
            "a job holds what its view has for an input, which names no stage; "
            "`context.input_names` has the names",
        )
    used = {role for job in outcome.jobs for role in job.inputs}
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
            + ("what the job receives, and not its key" if written else "the key for nothing"),
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


UNREAD, REFUSED = "AGC602", "AGC603"


@dataclass(frozen=True, slots=True)
class Context:
    """Values that differ in one setting from those that everything starts from, and that lower.
    `read` are the settings that the jobs of a stage read with them; None where that is unknown."""

    changed: str
    values: dict[str, Any]
    outcome: LoweringOutcome
    read: frozenset[str] | None

    def may_read(self, path: str) -> bool:
        """Whether a setting, or a group around it, could be read here."""
        if self.read is None:
            return True
        parts = path.split(".")
        return any(".".join(parts[:depth]) in self.read for depth in range(1, len(parts) + 1))


class Contexts:
    """The contexts of a backend, each lowered once for all its settings, when first needed."""

    def __init__(self, subject: BackendUnderTest) -> None:
        self._known: list[Context] = []
        self._further = self._lower(subject)

    def __iter__(self) -> Iterator[Context]:
        yield from self._known
        for context in self._further:
            self._known.append(context)
            yield context

    @staticmethod
    def _lower(subject: BackendUnderTest) -> Iterator[Context]:
        start = subject.start
        for path, field, _ in leaves(subject.table):
            for value in subject.flips(field, path, start):
                values = with_value(start, path, value)
                outcome = subject.lower(values)
                if outcome.codes:
                    continue
                read: frozenset[str] | None = None
                if isinstance(subject.backend, StageBackend):
                    read = frozenset().union(*(job.draft.view.read for job in outcome.jobs))
                yield Context(path, values, outcome, read)


def check_setting(
    subject: BackendUnderTest, path: str, field: Field, identity: str, contexts: Contexts
) -> None:
    """Flip one setting. One that only matters together with another is flipped there as well."""
    start = subject.start
    first = _first_flip(subject, field, path, start)
    before = subject.lower(start)
    if before.codes or not before.jobs:
        raise Skipped("there is nothing to compare it with: see the check `lowers`")
    after = subject.lower(with_value(start, path, first))
    _no_failure(path, first, after)
    if UNREAD in after.codes:
        _check_unread(subject, path, after)
        context = _find_context(subject, path, field, contexts)
        if context is None:
            return  # nothing here reads it, and the compiler says so
        start, before = context.values, context.outcome
    accepted = False
    chosen: list[Any] = []
    for value in subject.flips(field, path, start):
        after = subject.lower(with_value(start, path, value))
        _no_failure(path, value, after)
        if after.codes:
            _check_refusal(path, value, after)
            continue
        accepted = True
        same = after.written == before.written
        if same and not chosen and _is_automatic(field, value_at(start, path, field)):
            # One of its values may be what the backend chooses without it.
            chosen.append(value)
            continue
        _check_effect(path, value, identity, before, after)
    demand(
        accepted or REFUSED in after.codes,
        f"no value of `{path}` is accepted and none is refused by name ({after.complaints()}); "
        "if it needs a value that cannot be guessed, give the kit one to try",
    )


def _is_automatic(field: Field, value: Any) -> bool:
    if value == "auto":
        return True
    types = field.schema.get("type")
    return value is None and "boolean" in (types if isinstance(types, list) else [types])


def _first_flip(
    subject: BackendUnderTest, field: Field, path: str, values: Mapping[str, Any]
) -> Any:
    for value in subject.flips(field, path, values):
        return value
    raise Fault(
        f"`{path}` has no second value by its schema; a setting that cannot be changed is none "
        "(or give the kit a value to try)"
    )


def _no_failure(path: str, value: Any, outcome: LoweringOutcome) -> None:
    demand(
        "AGC605" not in outcome.codes,
        f"lowering raises with {path}={value!r} ({outcome.complaints()}); "
        "refuse such a value with `view.refuse`",
    )


def _check_unread(subject: BackendUnderTest, path: str, after: LoweringOutcome) -> None:
    """What the compiler says of a setting that is not read names it, and who would honour it."""
    message = next(found for found in after.diagnostics if found.code == UNREAD)
    demand(f"`{path}`" in message.message, f"the complaint does not name `{path}`: {message}")
    note = " ".join(message.notes)
    if not note:  # then the message gives the reason, which lies in another setting
        demand("does not read it here" not in message.message, f"no reason is given: {message}")
        return
    named = any(f"`{name}`" in note for name in subject.rivals()) or "no other" in note
    demand(named, f"the complaint names no backend that would honour `{path}`: {note}")


def _check_refusal(path: str, value: Any, after: LoweringOutcome) -> None:
    demand(
        after.codes <= {UNREAD, REFUSED},
        f"{path}={value!r} gives {after.complaints()}",
    )


def _check_effect(
    path: str, value: Any, identity: str, before: LoweringOutcome, after: LoweringOutcome
) -> None:
    demand(
        after.written != before.written,
        f"{path}={value!r} is read, but changes nothing that the job receives; put it into the "
        "job's config, program or lease, or do not read it",
    )
    if identity == "semantic":
        demand(
            after.keys[-1:] != before.keys[-1:],
            f"{path}={value!r} changes what the job receives, and not its key: it was read through "
            "another view than the job's `view` (or lease `identity`)",
        )
    else:
        demand(
            after.keys == before.keys,
            f"{path} is declared {identity}, and {value!r} changes a key: something that is not "
            "declared so depends on it",
        )


def _find_context(
    subject: BackendUnderTest, path: str, field: Field, contexts: Contexts
) -> Context | None:
    """Values of one other setting under which this one is read."""
    for context in contexts:
        if context.changed == path or not context.may_read(path):
            continue
        value = _first_flip(subject, field, path, context.values)
        if not subject.lower(with_value(context.values, path, value)).codes:
            return context
    return None
