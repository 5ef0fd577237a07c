"""The nearest settings under which a stage fits into its GPUs: the cheapest is tried first, and
suggested only where the stage still compiles with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from agentc.backend_api import ServerBackend, StageBackend
from agentc.backend_api.view import SettingTable
from agentc.ir.module import Stage, Value
from agentc.kinds.field import Json
from agentc.passes.checks.model_holders import ModelHolder
from agentc.passes.checks.subject import StageContext
from agentc.passes.lowering.module_context import ModuleContext
from agentc.passes.lowering.trial import attempt_lowering

_PLACEMENT = "placement."


def would_lower(subject: StageContext, backend: StageBackend, changes: Mapping[str, Json]) -> bool:
    """Whether the backend takes the stage with these settings, or complains of no more than is
    wrong with the stage as it stands."""
    stage = subject.stage
    own = subject.table.backends.get(stage.backend)
    before = _complaints(subject, own, stage) if isinstance(own, StageBackend) else frozenset()
    return _complaints(subject, backend, _changed(stage, backend, changes)) <= before


def _changed(stage: Stage, backend: StageBackend, changes: Mapping[str, Json]) -> Stage:
    options = {option.name for option in backend.options}
    placement = {
        name.removeprefix(_PLACEMENT): Value(value)
        for name, value in changes.items()
        if name.startswith(_PLACEMENT)
    }
    settings = {n: Value(v) for n, v in changes.items() if not n.startswith(_PLACEMENT)}
    body = replace(
        stage.body,
        backend=backend.id,
        fields={**stage.fields, **{n: v for n, v in settings.items() if n not in options}},
        options={**stage.options, **{n: v for n, v in settings.items() if n in options}},
        placement={**stage.placement, **placement},
    )
    return replace(stage, body=body)


def _complaints(subject: StageContext, backend: StageBackend, stage: Stage) -> frozenset[str]:
    """What the backend does not honour of the stage, by its settings' paths."""
    context = ModuleContext(subject.module, subject.table, subject.boundary)
    trial = attempt_lowering(stage, backend, context)
    refused = (refusal.path or refusal.reason for refusal in trial.refusals)
    failed = () if trial.failure is None else (trial.failure,)
    outside = () if trial.outside is None else (trial.outside.place,)
    return frozenset(
        (*trial.ignored, *trial.unused_resources, *trial.unused_inputs, *refused, *failed, *outside)
    )


_COUNTS = (2, 4, 8, 16, 32)
_GPUS = "placement.gpus"
_SHORTEST = 2048
"""Tokens of a window below which agents' episodes rarely go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRemedy:
    """Settings that fit, in words, and what a GPU needs then, in bytes."""

    words: str
    device: float


def remedies(holder: ModelHolder, subject: StageContext) -> list[MemoryRemedy]:
    """Those that fit, in the order in which one would try them: of each way the first."""
    card, before = holder.card, holder.need()
    assert card is not None
    assert before is not None
    found: dict[str, MemoryRemedy] = {}
    candidates = (
        _of_server(holder) if isinstance(holder.backend, ServerBackend) else _of_trainer(holder)
    )
    for way, changes in candidates:
        need = None if way in found else replace(holder, changes=changes).need()
        if need is None or not need.fits(card):
            continue
        words = _words(holder, changes)
        # What is as it was goes unsaid, so that two ways may come to the same words.
        if any(each.words == words for each in found.values()):
            continue
        backend = holder.backend
        if isinstance(backend, ServerBackend) or would_lower(subject, backend, changes):
            found[way] = MemoryRemedy(words=words, device=need.device)
    if not isinstance(holder.backend, ServerBackend):
        found |= _other_backends(holder, subject, card)
    return list(found.values())


def _words(holder: ModelHolder, changes: Mapping[str, Json]) -> str:
    """`sharding: full` with `processes: 8` on 8 GPUs; only what differs."""
    said = [
        f"`{name}: {'true' if value is True else value}`"
        for name, value in changes.items()
        if name != _GPUS and value != holder.get(name)
    ]
    gpus = changes.get(_GPUS)
    where = [] if gpus in (None, holder.gpus) else [f"on {gpus} GPUs"]
    return " ".join([" with ".join(said), *where]).strip()


def _of_trainer(holder: ModelHolder) -> Iterator[tuple[str, dict[str, Json]]]:
    """(way, changes), what changes least first."""
    saving: dict[str, Json] = {}
    if holder.get("gradient_checkpointing") is False:
        saving["gradient_checkpointing"] = True
        yield "gradient_checkpointing", dict(saving)
    for micro in _micro_batches(holder, _processes(holder)):
        if micro:
            yield "micro_batch", dict(micro)
            yield "micro_batch", {**micro, **saving}
    shared = [
        (f"{name} {value}", {name: value, **micro, **_on(count)})
        for name, value in _sharing(holder)
        for count in _counts(holder)
        for micro in _micro_batches(holder, count)
    ]
    for way, changes in shared:
        yield way, changes
        yield way, {**changes, **saving}
    # Slow, and of the main memory: the last of what the same GPUs can do.
    for _, changes in shared:
        if "sharding" in changes:
            yield "offload", {**changes, "offload": True}
            yield "offload", {**changes, **saving, "offload": True}


def _micro_batches(holder: ModelHolder, count: int) -> Iterator[Mapping[str, Json]]:
    """Rows that so many processes may take at once, the most first: as the spec has it, where
    that divides a process's share, and ever fewer."""
    said, share = _number(holder, "micro_batch"), _share(holder, count)
    if not said or share % said == 0:
        yield {}
    for size in _halves(min(said or share, share)):
        if share % size == 0 and size != (said or share):
            yield {"micro_batch": size}


def _sharing(holder: ModelHolder) -> Iterator[tuple[str, Json]]:
    """Ways to share weights, gradients and moments out that the backend has, the next ones."""
    steps = ("none", "optimizer", "full")
    said = holder.get("sharding")
    start = steps.index(said) if said in steps else 0
    if start or not holder.settings.declares("zero_stage"):
        yield from (("sharding", step) for step in steps[max(1, start) :])
    else:
        stage = _number(holder, "zero_stage") or 0
        yield from (("zero_stage", each) for each in (2, 3) if each >= stage)


def _other_backends(
    holder: ModelHolder, subject: StageContext, card: float
) -> Mapping[str, MemoryRemedy]:
    """Other backends of the kind, as they are without options of their own."""
    found: dict[str, MemoryRemedy] = {}
    for other in subject.table.stage_backends(subject.stage.kind):
        if other.id == holder.backend.id or other.memory is None:
            continue
        if {"float32", "bfloat16"} & other.capabilities - {str(holder.get("dtype"))} == {
            "bfloat16"
        }:
            continue  # it trains in bfloat16 alone
        settings = holder.settings.with_options(SettingTable(other.options))
        if not settings.declares("zero_stage"):
            continue
        # `sharding` says the stage where it is given.
        shared: dict[str, Json] = {"zero_stage": 2} if holder.get("sharding") == "none" else {}
        moved = replace(holder, backend=other, settings=settings)
        changes = next(
            (
                changes
                for count in _counts(holder)
                for micro in _micro_batches(holder, count)
                if _fits(moved, changes := {**shared, **micro, **_on(count)}, card)
                and would_lower(subject, other, changes)
            ),
            None,
        )
        if changes is not None:
            need = replace(moved, changes=changes).need()
            assert need is not None
            more = _words(moved, changes)
            words = f"`backend: {other.id}` {'with ' if more[:1] == '`' else ''}{more}".strip()
            found[other.id] = MemoryRemedy(words=words, device=need.device)
    return found


def _fits(holder: ModelHolder, changes: Mapping[str, Json], card: float) -> bool:
    need = replace(holder, changes=changes).need()
    return need is not None and need.fits(card)


def _of_server(holder: ModelHolder) -> Iterator[tuple[str, dict[str, Json]]]:
    window = _number(holder, "max_model_len") or holder.model.context
    length = window // 2
    while length >= _SHORTEST:
        yield "max_model_len", {"max_model_len": length}
        length //= 2
    now = _number(holder, "tensor_parallel") or 1
    for count in _COUNTS[:3]:
        if count > now and holder.model.heads % count == 0:
            yield "tensor_parallel", {"tensor_parallel": count, _GPUS: count}


def _on(count: int) -> dict[str, Json]:
    return {"processes": count, _GPUS: count}


def _counts(holder: ModelHolder) -> list[int]:
    """Numbers of processes: as many as there are, and more."""
    now = _processes(holder)
    return [n for n in dict.fromkeys((now, *_COUNTS)) if n >= max(2, now) and _share(holder, n)]


def _processes(holder: ModelHolder) -> int:
    return _number(holder, "processes") or 1


def _share(holder: ModelHolder, count: int) -> int:
    """Rows of a step for each of so many processes; 0 where they do not divide."""
    whole = _number(holder, "global_batch") or 0
    return 0 if count < 1 or whole % count else whole // count


def _halves(size: int) -> list[int]:
    found = []
    while size >= 1:
        found.append(size)
        if size % 2:
            break
        size //= 2
    return found if 1 in found or not found else [*found, 1]


def _number(holder: ModelHolder, path: str) -> int:
    found = holder.get(path)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0
