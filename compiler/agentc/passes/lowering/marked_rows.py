"""Rows of a file whose replies are marked as not trained, and trainings that would train them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agentc.ir.module import Module, Stage
from agentc.kinds import kind_named
from agentc.kinds.groups import REWORKERS
from agentc.passes.context import PassContext
from agentc.passes.lowering.setting_span import stage_span
from agentc.passes.lowering.trial import LoweringTrial
from agentc.text import counted

_SETTING = "loss_on"


def report_marked_rows(
    attempts: Sequence[tuple[Stage, LoweringTrial]], module: Module, context: PassContext
) -> None:
    """AGC693 where a training that sets no `loss_on` takes rows with marks, directly or reworked.
    Lowering counts marks in local files (`marked` of `JobDraft.expected`)."""
    marked = {
        stage.id: count
        for stage, attempt in attempts
        for draft in attempt.drafts
        if isinstance(count := draft.expected.get("marked"), int)
    }
    for stage, _ in attempts if marked else ():
        kind = kind_named(stage.kind)
        declared = next((f for f in kind.fields if f.name == _SETTING), None) if kind else None
        if declared is None or _SETTING in stage.fields:
            continue
        for source in _sources(stage, module, marked):
            context.sink.error(
                "AGC693",
                f"{counted(marked[source], 'reply', 'replies')} of `{source}` "
                f"{'is' if marked[source] == 1 else 'are'} marked as not trained, and `{stage.id}` "
                "would train them",
                stage_span(stage, "data"),
                notes=(f"`{stage.id}`: `{_SETTING}` is `{declared.default}` by default",),
                fix=f"set `{_SETTING}: marked` to leave them out, or `{_SETTING}: "
                f"{declared.default}` to train them all the same",
                steps=stage.origin.steps,
            )


def _sources(stage: Stage, module: Module, marked: Mapping[str, int]) -> Iterator[str]:
    """The stages with marks that the data of a stage come from."""
    waiting, seen = list(stage.inputs.get("data", ())), set[str]()
    while waiting:
        name = waiting.pop(0)
        found = module.stages.get(name)
        if found is None or name in seen:
            continue
        seen.add(name)
        if name in marked:
            yield name
        for role in REWORKERS.get(found.kind, ()):
            waiting.extend(found.inputs.get(role, ()))
