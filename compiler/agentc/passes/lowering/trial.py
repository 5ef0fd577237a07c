"""Trial lowering: run one backend on one stage and say what came out and what it did not honour.

Used by `choose_backends` (which candidate honours everything?), by `lower` (the real thing), and
for naming the backends that would honour what the chosen one does not. Bodies are lowered, with
placeholders for the stages that the inputs are; a stage fills in its own (`Stage.fill`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentc.backend_api import JobDraft, Refusal, StageBackend, StageView
from agentc.ir.module import ALGORITHM, Body, Stage
from agentc.kinds import KINDS
from agentc.passes.lowering.leases import MissingResourceError, PathEscape, path_escape
from agentc.passes.lowering.module_context import ModuleContext, stage_values
from agentc.source.files import OutsideError

_KINDS = {kind.name: kind for kind in KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweringTrial:
    """What a backend made of a body; in the inputs of `drafts` placeholders name stages.

    `ignored` are dotted paths that the stage sets and no job's view read; `ignored_defaults` are
    those that it took from the spec's `defaults:` and no view read, `used_defaults` those that one
    did. `unused_resources` are keys among environment, server and prompt that lowering never asked
    for, `unused_inputs` inputs that no job has; `reasons` says of some paths why they are not read;
    `failure` is the text of an exception, which is a bug of the backend. `named` is true where the
    backend asked what inputs are called: then all of it is about one stage.
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
    named: bool = False

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


def attempt_lowering(stage: Stage, backend: StageBackend, context: ModuleContext) -> LoweringTrial:
    """Lower the body of a stage on a backend, once unless the backend asks for names. Never raises:
    a bug of the backend becomes `failure`."""
    known = context.tried.get((stage.body, backend.id))
    if known is None:
        known = _attempt(stage, backend, context)
        if not known.named:
            context.tried[stage.body, backend.id] = known
    return known


def _attempt(stage: Stage, backend: StageBackend, context: ModuleContext) -> LoweringTrial:
    body = stage.body
    table, looked_up = context.fields_of(backend)
    values = stage_values(body)
    view = StageView(
        table=table,
        values=values,
        kind=body.kind,
        inputs=body.slots(),
        known=looked_up,
        files=context.content_of,
        unused=context.unused_of(backend),
    )
    if values.get(ALGORITHM) in backend.algorithms:
        view.get(ALGORITHM)  # honoured by the choice of the backend
    context.begin(stage)
    failure = None
    drafts: tuple[JobDraft, ...] = ()
    try:
        drafts = backend.lower(view, context)
    except MissingResourceError:
        return LoweringTrial(backend=backend, named=context.named)
    except OutsideError as error:
        outside = path_escape(error, values)
        return LoweringTrial(backend=backend, outside=outside, named=context.named)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    for draft in drafts:
        if draft.view is not view:
            view.absorb(draft.view)
    _refuse_inputs(view, body, backend)
    given = tuple(view.set_paths())
    lost = tuple(path for path in given if path not in view.read)
    # A stage that names none takes that of `defaults:`, or the only entry of a section; it is no
    # wish of its own.
    wanted = [use for use in _KINDS[body.kind].uses if use in body.named - body.defaulted]
    return LoweringTrial(
        backend=backend,
        drafts=drafts,
        ignored=tuple(path for path in lost if path not in body.defaulted),
        ignored_defaults=tuple(path for path in lost if path in body.defaulted),
        used_defaults=tuple(p for p in given if p in body.defaulted and p in view.read),
        unused_resources=tuple(use for use in wanted if use not in context.asked),
        unused_inputs=_unused_inputs(body, drafts, backend),
        refusals=tuple(dict.fromkeys(view.refusals)),
        reasons={**view.unused, **view.reasons},
        failure=failure,
        named=context.named,
    )


def _unused_inputs(
    body: Body, drafts: tuple[JobDraft, ...], backend: StageBackend
) -> tuple[str, ...]:
    kind = _KINDS[body.kind]
    return tuple(
        role
        for role, producers in body.shape.items()
        # Those of servers that its environment asks come with the lease.
        if (kind.gathers or kind.role(role) is not None)
        and drafts
        and producers
        and not any(draft.inputs.get(role) for draft in drafts)
        and backend.takes(role)
    )


def _refuse_inputs(view: StageView, body: Body, backend: StageBackend) -> None:
    """Those that this backend of the kind has no use for, whatever the settings are."""
    taken = " and ".join(f"`{role}`" for role in backend.inputs or ())
    for role, producers in body.shape.items():
        if producers and not backend.takes(role):
            view.refuse(role, f"it works on {taken}, not on `{role}`", fix=f"remove `{role}`")
