"""Trial lowering: run one backend on one stage and say what came out and what it did not honour.

Used by `choose_backends` (which candidate honours everything?), by `lower` (the real thing), and
for naming the backends that would honour what the chosen one does not. Rounds and cells of a sweep
hold equal stages under other names: one of them is lowered for all, where its backend does not look
at names.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, SupportsIndex, TypeVar

from agentc.backend_api import JobDraft, Refusal, StageBackend, StageView
from agentc.ir.module import Stage
from agentc.kinds import KINDS
from agentc.kinds.field import Json
from agentc.passes.lowering.leases import MissingResourceError, PathEscape, path_escape
from agentc.passes.lowering.module_context import ModuleContext
from agentc.plan.job import Resources
from agentc.source.files import OutsideError


@dataclass(slots=True)
class Attention:
    """Whether anybody looked at any of a stage's ids."""

    looked: bool = False


class TrackedIds(tuple[str, ...]):
    """The ids of one role, in order."""

    role: str
    attention: Attention

    def __new__(cls, role: str, ids: tuple[str, ...], attention: Attention) -> TrackedIds:
        self = super().__new__(cls, ids)
        self.role, self.attention = role, attention
        return self

    def _seen(self) -> tuple[str, ...]:
        self.attention.looked = True
        return tuple.__getitem__(self, slice(None))

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen())

    def __getitem__(self, at: SupportsIndex | slice) -> Any:
        return self._seen()[at]

    def __contains__(self, name: object) -> bool:
        return name in self._seen()

    def __add__(self, other: Any) -> Any:
        return self._seen() + tuple(other)

    def __eq__(self, other: object) -> bool:
        return self._seen() == other

    def __ne__(self, other: object) -> bool:
        return self._seen() != other

    def __hash__(self) -> int:
        return hash(self._seen())

    def __lt__(self, other: tuple[str, ...]) -> bool:
        return self._seen() < other

    def __le__(self, other: tuple[str, ...]) -> bool:
        return self._seen() <= other

    def __gt__(self, other: tuple[str, ...]) -> bool:
        return self._seen() > other

    def __ge__(self, other: tuple[str, ...]) -> bool:
        return self._seen() >= other

    def __mul__(self, times: SupportsIndex) -> tuple[str, ...]:
        return self._seen() * times

    def index(self, name: str, *between: SupportsIndex) -> int:
        return self._seen().index(name, *between)

    def count(self, name: str) -> int:
        return self._seen().count(name)

    def __repr__(self) -> str:
        return repr(self._seen())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (list(self._seen()),)


def tracked(inputs: Mapping[str, tuple[str, ...]]) -> tuple[dict[str, TrackedIds], Attention]:
    """The inputs of a stage for its backend to hand on, and what notes a look at them."""
    attention = Attention()
    return {role: TrackedIds(role, ids, attention) for role, ids in inputs.items()}, attention


def inputs_of(draft: JobDraft, stage: Stage) -> dict[str, tuple[str, ...]]:
    """The inputs of a draft, with the ids of a stage where those of an equal one were handed on."""
    return {
        role: stage.inputs[ids.role] if isinstance(ids, TrackedIds) else ids
        for role, ids in draft.inputs.items()
    }


# Equal parts of drafts, kept once for a whole plan: rounds and cells of a sweep repeat their jobs
# but for names and seeds, and keys, plan.json and estimates are made of each part once.

_T = TypeVar("_T", bound=Mapping[str, object])


@dataclass(frozen=True, slots=True)
class SharedParts:
    """What was met first of each; parts count as equal that would be written alike."""

    _values: dict[str, Mapping[str, object]] = field(default_factory=dict)
    _met: dict[int, tuple[object, Mapping[str, object]]] = field(default_factory=dict)
    _identities: dict[tuple[int, int], Mapping[str, Json]] = field(default_factory=dict)
    _resources: dict[Resources, Resources] = field(default_factory=dict)

    def value(self, part: _T) -> _T:
        """A part of a draft that becomes JSON."""
        known = self._met.get(id(part))
        if known is None:  # holding the part keeps its id its own
            # By its text: 1 and 1.0 are equal, and are written differently.
            known = self._met[id(part)] = (part, self._values.setdefault(repr(part), part))
        return known[1]  # type: ignore[return-value]

    def identity(self, draft: JobDraft) -> Mapping[str, Json]:
        """The identity of a job: the settings that it read, and the facts that it adds."""
        settings, facts = draft.view.shared_identity(), self.value(draft.extra_identity)
        # Views keep the settings, this object the facts, so that their ids stay their own.
        key = (id(settings), id(facts))
        if key not in self._identities:
            self._identities[key] = {"settings": dict(settings), "facts": dict(facts)}
        return self._identities[key]

    def resources(self, asked: Resources) -> Resources:
        """What a job asks of the machine."""
        return self._resources.setdefault(asked, asked)


def look_through(drafts: tuple[JobDraft, ...]) -> None:
    """Look at all that drafts hold besides their inputs, so that ids handed on elsewhere count;
    leases are looked at where they are made (`ModuleLeases.look_through`)."""
    for draft in drafts:
        for name in _OF_JOBS:
            repr(getattr(draft, name))


_ASIDE = frozenset({"inputs", "view", "leases", "software"})
"""Looked at by themselves, or made by nobody's lowering."""
_OF_JOBS = tuple(each.name for each in fields(JobDraft) if each.name not in _ASIDE)


_KINDS = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweringTrial:
    """What a backend made of a stage, or of one that is equal but for names: `inputs_of` has the
    inputs of `drafts`.

    `ignored` are dotted paths that the stage sets and no job's view read; `ignored_defaults` are
    those that it took from the spec's `defaults:` and no view read, `used_defaults` those that one
    did. `unused_resources` are keys among environment, server and prompt that lowering never asked
    for, `unused_inputs` inputs that no job has; `reasons` says of some paths why they are not read;
    `failure` is the text of an exception, which is a bug of the backend. `name_independent` is true
    where all of it is the same for stages that are equal but for what they and their inputs are
    called.
    """

    backend: StageBackend
    drafts: tuple[JobDraft, ...] = ()
    ignored: tuple[str, ...] = ()
    ignored_defaults: tuple[str, ...] = ()
    used_defaults: tuple[str, ...] = ()
    unused_resources: tuple[str, ...] = ()
    unused_inputs: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    outside: PathEscape | None = None
    name_independent: bool = False

    @property
    def honours_all(self) -> bool:
        """Whether nothing of the stage is lost or refused."""
        return not (self.ignored or self.unused_resources or self.refusals or self.failure)

    def honours(self, path: str) -> bool:
        """Whether this backend reads the setting at a dotted path and does not refuse it."""
        lost = {
            *self.ignored,
            *self.ignored_defaults,
            *self.unused_resources,
            *(refusal.path for refusal in self.refusals),
        }
        return self.failure is None and path not in lost


def ground_of(stage: Stage) -> Hashable:
    """All of a stage but what it and its inputs are called, and where it stands. Rounds repeat it:
    they hold the same values (`front.bound_values`), which the module keeps, so that their ids
    stay their own."""
    return (
        *(stage.kind, stage.defaulted),
        *map(id, (stage.fields, stage.options, stage.placement)),
        tuple((use, entry, use in stage.spans) for use, entry in stage.uses.items()),
        tuple((role, len(ids)) for role, ids in stage.inputs.items()),
    )


def attempt_lowering(stage: Stage, backend: StageBackend, context: ModuleContext) -> LoweringTrial:
    """Lower a stage on a backend. Never raises: a bug of the backend becomes `failure`. Of equal
    stages the first one alone is lowered, where the backend does not look at names."""
    ground = (backend.id, ground_of(stage))
    found = context.tried.get(ground)
    if found is None:
        found = _attempt(stage, backend, context)
        if found.name_independent:
            context.tried[ground] = found
    return found


def _attempt(stage: Stage, backend: StageBackend, context: ModuleContext) -> LoweringTrial:
    kind = _KINDS[stage.kind]
    table, known = context.fields_of(backend)
    given = context.given(stage, backend)
    inputs, attention = tracked(stage.inputs)
    view = StageView(
        table=table,
        values=given.values,
        kind=stage.kind,
        inputs=inputs,
        known=known,
        lookups=given.lookups,
        files=context.content_of,
        unused=context.unused_of(backend),
    )
    context.asked.clear()
    context.stage = stage
    failure = None
    drafts: tuple[JobDraft, ...] = ()
    try:
        drafts = backend.lower(view, context)
    except MissingResourceError:
        return LoweringTrial(backend=backend)
    except OutsideError as error:
        return LoweringTrial(backend=backend, outside=path_escape(error, given.values))
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    for draft in drafts:
        if draft.view is not view:
            view.absorb(draft.view)
    look_through(drafts)
    context.look_through(drafts)
    _refuse_inputs(view, stage, backend)
    own = [path for path in given.paths if path not in stage.defaulted]
    defaulted = [path for path in given.paths if path in stage.defaulted]
    return LoweringTrial(
        backend=backend,
        drafts=drafts,
        ignored=tuple(path for path in own if path not in view.read),
        ignored_defaults=tuple(path for path in defaulted if path not in view.read),
        used_defaults=tuple(path for path in defaulted if path in view.read),
        unused_resources=tuple(
            use
            for use in kind.uses
            # A stage that names none takes that of `defaults:`, or the only entry of a section; it
            # is no wish of its own.
            if use in stage.uses
            and use in stage.spans
            and use not in stage.defaulted
            and use not in context.asked
        ),
        unused_inputs=tuple(
            role
            for role, producers in stage.inputs.items()
            # Those of servers that its environment asks come with the lease.
            if (kind.gathers or kind.role(role) is not None)
            and drafts
            and producers
            and not any(draft.inputs.get(role) for draft in drafts)
            and backend.takes(role)
        ),
        refusals=tuple(dict.fromkeys(view.refusals)),
        reasons={**view.unused, **view.reasons},
        failure=failure,
        name_independent=failure is None and not attention.looked,
    )


def _refuse_inputs(view: StageView, stage: Stage, backend: StageBackend) -> None:
    """Those that this backend of the kind has no use for, whatever the settings are."""
    taken = " and ".join(f"`{role}`" for role in backend.inputs or ())
    for role, producers in stage.inputs.items():
        if producers and not backend.takes(role):
            view.refuse(role, f"it works on {taken}, not on `{role}`", fix=f"remove `{role}`")
