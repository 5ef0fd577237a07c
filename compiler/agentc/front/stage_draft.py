"""StageDraft: a stage while `bind_stage.py` binds it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from agentc.diagnostics.sink import Sink
from agentc.diagnostics.span import Span
from agentc.front.expand_repeat import Unrolled
from agentc.kinds import Kind
from agentc.schema.structure import report_empty
from agentc.syntax.nodes import Spec


@dataclass(slots=True)
class StageDraft:
    """What has been read of a stage so far; `whole` is False once anything is missing, `fixed`
    once anything depends on the round or on a param. `taken` are the defaults that it took."""

    unrolled: Unrolled
    kind: Kind
    spans: dict[str, Span] = field(default_factory=dict)
    defaulted: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    whole: bool = True
    fixed: bool = True

    def lacks_section(self, section: str, spec: Spec, sink: Sink) -> bool:
        """Whether a section that it needs could not be read, or is empty (reported then)."""
        if section in spec.empty:
            report_empty(section, spec.empty[section], sink)
        elif section not in spec.broken:
            return False
        self.whole = False
        return True

    def report(
        self,
        sink: Sink,
        code: str,
        message: str,
        span: Span,
        *,
        expected: str | None = None,
        fix: str | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        """An error of the stage, which it is not whole with."""
        self.whole = False
        sink.error(
            code,
            message,
            span,
            expected=expected,
            notes=notes,
            fix=fix,
            steps=self.unrolled.steps,
        )
