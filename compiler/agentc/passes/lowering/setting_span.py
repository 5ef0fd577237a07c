"""Where a setting of a stage or resource was written, for diagnostics."""

from __future__ import annotations

from agentc.diagnostics.span import Span
from agentc.ir.module import Resource, Stage


def stage_span(stage: Stage | Resource, path: str) -> Span:
    """The span of a dotted path, of the nearest mapping around it, or of the whole entry."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        prefix = ".".join(parts[:length])
        span = stage.spans.get(prefix) or stage.spans.get(f"options.{prefix}")
        if span is not None:
            return span
    for table in (stage.fields, stage.options):
        value = table.get(parts[0])
        if value is not None and value.span is not None:
            return value.span
    return stage.origin.span
