"""What does not fit a fragment of JSON Schema is told at the place that was written, in words."""

from __future__ import annotations

import pytest

from agentc.backend_api import load_backends
from agentc.diagnostics import Sink
from agentc.diagnostics.diagnostic import Source
from agentc.front.read_module import build_module
from agentc.source.load import load_text

SPEC = "agentc: 1\nname: x\nservers:\n  s:\n    backend: scripted\n    rules:\n      - {}\n"


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("{atch: a, reply: b}", [("AGC201", 10, "did you mean `match`?")]),
        ("{match: a, repl: b}", [("AGC201", 20, "did you mean `reply`?")]),
        ("{match: a}", [("AGC202", 9, None)]),
        ("{turn: -1, reply: b}", [("AGC203", 16, None)]),
        ("{zz: 1, reply: [], turn: 0}", [("AGC201", 10, None), ("AGC203", 24, None)]),
        ("hello", [("AGC203", 9, None)]),
        ("{match: a, reply: [b, c]}", []),
    ],
)
def test_a_misfit_is_told_at_its_place(rule: str, told: list[tuple[str, int, str | None]]) -> None:
    sink = Sink()
    source = Source("spec", SPEC.replace("{}", rule))
    root = load_text(source, sink)
    assert root is not None
    build_module(source, root, {}, load_backends(), sink)
    found = [each for each in sink.sorted() if each.span is not None and each.span.line == 7]
    assert [(d.code, d.span.column if d.span else 0, d.fix) for d in found] == told
    assert all("{" not in (d.expected or "") for d in found)
