"""The `algorithm` of a stage: one that an installed backend of its kind implements, and that the
stage's own `backend` implements where it names one."""

from __future__ import annotations

from collections.abc import Mapping

from agentc.backend_api import BackendTable, StageBackend
from agentc.diagnostics.diagnostic import Span
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed, nearest_first
from agentc.ir.module import ALGORITHM
from agentc.kinds import Kind


def report_algorithm(
    kind: Kind,
    backend: StageBackend | None,
    algorithm: str | None,
    *,
    stage: str,
    spans: Mapping[str, Span],
    span: Span,
    table: BackendTable,
    sink: Sink,
    steps: tuple[str, ...],
) -> bool:
    """Whether the stage names an algorithm where it has to, and one that is implemented; otherwise
    it is reported. `backend` is the one that the stage names."""
    known = table.algorithms(kind.name)
    if algorithm is None:
        return backend is None or _is_plain(backend, stage, spans, span, sink, steps)
    if algorithm not in known:
        sink.error(
            "AGC204",
            f"`algorithm` of stage `{stage}` cannot be `{algorithm}`",
            spans.get(ALGORITHM, span),
            expected=f"one of {listed(nearest_first(algorithm, known))}",
            notes=() if not (reason := kind.without.get(algorithm)) else (reason,),
            fix=did_you_mean(algorithm, known),
            steps=steps,
        )
        return False
    if backend is None or backend.implements(algorithm):
        return True
    able = [each.id for each in table.implementing(kind.name, algorithm)]
    sink.error(
        "AGC601",
        f"`{backend.id}` does not implement `algorithm: {algorithm}`",
        spans.get("backend", span),
        expected=f"one of {listed(able)}",
        notes=(f"{backend.id} implements {listed(backend.algorithms)}",)
        if backend.algorithms
        else (),
        fix="remove `backend`: it is chosen by the algorithm",
        steps=steps,
    )
    return False


def _is_plain(
    backend: StageBackend,
    stage: str,
    spans: Mapping[str, Span],
    span: Span,
    sink: Sink,
    steps: tuple[str, ...],
) -> bool:
    """Whether a backend that a stage names without an algorithm implements one only."""
    if len(backend.algorithms) > 1:
        sink.error(
            "AGC202",
            f"stage `{stage}` needs `algorithm`",
            spans.get("backend", span),
            expected=f"one of {listed(backend.algorithms)}",
            notes=(f"{backend.id} implements {len(backend.algorithms)} algorithms",),
            fix=f"write `algorithm: {backend.algorithms[0]}`",
            steps=steps,
        )
        return False
    if backend.algorithms and backend.id == f"{backend.algorithms[0]}.{backend.kind}":
        name = backend.algorithms[0]
        sink.note(
            "AGC215",
            f"`{name}` is an algorithm, and `backend` is its implementation",
            spans.get("backend", span),
            fix=f"write `algorithm: {name}` in place of `backend: {name}`",
            steps=steps,
        )
    return True
