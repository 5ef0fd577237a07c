"""A table of toy backends for the pass cases: small, stable, with the differences that matter.

`toy.*` and `model.scratch` honour every field of their kinds. `plain.dpo` reads neither
`mean_log_prob` nor `nll_weight`, `trl.dpo` not the first; `strict.dpo` refuses hinge.
`deaf.evaluate` asks for no prompt. `plain.dpo` and `serve.short` say what they keep in memory.
`serve.short` has no `context`; `env.game` never reads `unread`; `env.later` cannot run.
"""

from __future__ import annotations

from agentc.backend_api import (
    Backend,
    BackendTable,
    EnvironmentBackend,
    Held,
    JobDraft,
    LeaseDraft,
    Logits,
    LowerContext,
    MemoryQuestion,
    OptionView,
    ServerBackend,
    ServerMemory,
    Software,
    StageBackend,
    StageView,
    TrainerMemory,
)
from agentc.kinds import KINDS, Kind
from agentc.kinds.field import Field, boolean, integer

SOFTWARE = Software(name="toy", lock=f"toy==1.0 --hash=sha256:{'0' * 64}\n")


def _trained(question: MemoryQuestion) -> TrainerMemory:
    return TrainerMemory(
        held=(Held(name="weights", width=4), Held(name="moments", width=8, split=True)),
        processes=question.integer("processes", 1),
        sequences=2,
        length=question.integer("max_length", 1),
        flow=4,
        residual=4,
        logits=Logits(8),
        checkpointing=False,
        loaded=4,
        checkpoint=12,
    )


def _served(question: MemoryQuestion) -> ServerMemory:
    window = question.model.context
    return ServerMemory(
        weights=2, devices=1, cache=2, window=window, batch=64, flow=2, replies=8, share=0.5
    )


def stage_backend(
    kind: Kind,
    name: str,
    *,
    ignores: tuple[str, ...] = (),
    capabilities: tuple[str, ...] = (),
    options: tuple[Field, ...] = (),
    uses: tuple[str, ...] | None = None,
) -> StageBackend:
    used = kind.uses if uses is None else uses

    def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
        view = stage.scoped()
        read = [f.name for f in (*kind.fields, *options) if f.name not in ignores]
        leases = []
        if "server" in used:
            leases.append(context.server_lease(view, "model"))
        if "environment" in used:
            leases.append(context.environment_lease(view))
        facts = {}
        if "prompt" in used and (prompt := context.prompt(view)) is not None:
            facts["instruction"] = prompt.instruction
        if name == "strict.dpo" and view.text("loss") == "hinge":
            view.refuse("loss", "it has no hinge loss", capability="hinge")
        return (
            JobDraft(
                kind=kind.name,
                backend=name,
                version=1,
                software=SOFTWARE,
                program=("-m", "toy"),
                view=view,
                config={path: view.get(path) for path in read},
                inputs=stage.inputs,
                produces=kind.produces.name,
                leases=tuple(leases),
                extra_identity=facts,
            ),
        )

    return StageBackend(
        id=name,
        kind=kind.name,
        version=1,
        doc=f"Does {kind.name}.",
        software=SOFTWARE,
        lower=lower,
        capabilities=frozenset(capabilities),
        options=options,
        memory=_trained if name == "plain.dpo" else None,
    )


def _server(name: str, fields: tuple[Field, ...]) -> ServerBackend:
    def lease(options: OptionView) -> LeaseDraft:
        for field in fields:
            options.get(field.name)
        return LeaseDraft(
            role="policy",
            backend=name,
            version=1,
            software=SOFTWARE,
            program=("-m", "toy_server"),
            identity=options.identity(),
        )

    return ServerBackend(
        id=name,
        version=1,
        doc="Serves.",
        software=SOFTWARE,
        lease=lease,
        fields=fields,
        memory=_served if name == "serve.short" else None,
    )


def _environment(name: str, *, available: bool = True) -> EnvironmentBackend:
    def lease(options: OptionView) -> LeaseDraft:
        options.get("depth")
        return LeaseDraft(
            role="environment",
            backend=name,
            version=1,
            software=SOFTWARE,
            program=("-m", "toy_environment"),
            identity=options.identity(),
        )

    return EnvironmentBackend(
        id=name,
        version=1,
        doc="A game.",
        software=SOFTWARE,
        lease=lease,
        fields=(integer("depth", "Depth.", 1), boolean("unread", "Never read.", False)),
        splits=("train", "validation", "test"),
        max_turns=20,
        available=available,
    )


def toy_table() -> BackendTable:
    kinds = {kind.name: kind for kind in KINDS}
    context = integer("context", "Longest prompt.", 512)
    found: list[Backend] = [
        *(
            stage_backend(kind, f"toy.{kind.name}")
            for kind in KINDS
            if kind.name not in ("model", "dpo")
        ),
        stage_backend(kinds["model"], "model.scratch"),
        stage_backend(kinds["dpo"], "plain.dpo", ignores=("mean_log_prob", "nll_weight")),
        stage_backend(kinds["dpo"], "strict.dpo"),
        stage_backend(kinds["dpo"], "trl.dpo", ignores=("mean_log_prob",), capabilities=("hinge",)),
        stage_backend(kinds["evaluate"], "deaf.evaluate", uses=("environment", "server")),
        _server("serve.long", (context, boolean("eager", "Compile nothing.", False))),
        _server("serve.short", (boolean("eager", "Compile nothing.", False),)),
        _environment("env.game"),
        _environment("env.later", available=False),
    ]
    return BackendTable({backend.id: backend for backend in found})
