"""The stages that a name in a stage's input means, or a report of why it means none. Part of
`bind_stage.py`; `stage_references.py` knows what names mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import listed
from agentc.front.expand_repeat import Unrolled
from agentc.front.expressions import Evaluator
from agentc.front.stage_draft import StageDraft
from agentc.front.stage_references import ReferenceResolver, RefusedReference
from agentc.kinds.field import Role
from agentc.schema.structure import report_empty
from agentc.source.tree import Node, Unknown, described, items_of, text_of
from agentc.syntax.nodes import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class StagesMeant:
    """Looks up names for the stages of one spec, or of one cell of its matrix."""

    spec: Spec
    references: ReferenceResolver
    evaluator: Evaluator
    sink: Sink

    def of(self, draft: StageDraft, role: Role, node: Node, at: Unrolled) -> Sequence[str]:
        """Ids in order, for a name that stands where `at` does; () where there are none: reported,
        but for a carried name that stands for nothing yet."""
        if isinstance(node, Unknown):
            draft.whole = False
            return ()
        text = text_of(node)
        if text is None:
            draft.report(
                self.sink,
                "AGC203",
                f"`{role.name}` cannot be {described(node)}",
                node.span,
                expected="the name of a stage" + (", or a list of names" if role.many else ""),
            )
            return ()
        found = self.references.resolve(text, at)
        if not isinstance(found, RefusedReference):
            return tuple(each for part in found for each in self._part(draft, role, part, at))
        draft.whole = False
        if found.code == "AGC401" and not found.fix and "models" in self.spec.empty:
            report_empty("models", self.spec.empty["models"], self.sink)
        elif found.code is not None:
            self.sink.error(
                found.code,
                found.message,
                node.span,
                expected=found.expected,
                notes=found.notes,
                fix=found.fix,
                steps=draft.unrolled.steps,
            )
        return ()

    def _part(self, draft: StageDraft, role: Role, part: str | Node, at: Unrolled) -> Iterator[str]:
        if isinstance(part, str):
            yield part
            return
        outside = Unrolled(id=at.repeat or at.id, declared=at.declared, scope=at.scope)
        for item in items_of(self.evaluator.evaluate(part, at.scope, at.steps))[0]:
            yield from self.of(draft, role, item, outside)

    def report_nothing(self, draft: StageDraft, role: str, node: Node) -> None:
        """Report an input that no stage is named for."""
        items, _ = items_of(node)
        unrolled = draft.unrolled
        written = {text_of(item) for item in items}
        names = [name for name in unrolled.carried if name in written]
        if not names:
            draft.report(
                self.sink,
                "AGC205",
                f"`{role}` cannot be empty",
                node.span,
                expected="the name of a stage, or a list of names",
            )
            return
        draft.report(
            self.sink,
            "AGC205",
            f"`{role}` is empty in round {unrolled.round}: {listed(names)} "
            f"{'carries' if len(names) == 1 else 'carry'} nothing yet",
            node.span,
            notes=("`from: []` stands for no stage",),
            fix="name a stage of the round beside it, or one in `from`",
        )
