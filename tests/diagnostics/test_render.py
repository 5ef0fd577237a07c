"""Rendering: the caret stands under the place, whatever the text; JSON says the same."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from agentc.diagnostics import Diagnostic, Sink, render_json, render_text
from agentc.diagnostics.diagnostic import Source, Span

TEXT = "agentc: 1\nname: demo\nstages:\n\tx: é\n" + "a" * 300 + "END\n"


def span(line: int, column: int, end: int, text: str = TEXT, end_line: int | None = None) -> Span:
    return Span(Source("spec.yaml", text), line, column, end_line or line, end)


def one(place: Span | None, **more: object) -> str:
    return render_text([Diagnostic(code="AGC201", message="wrong", span=place, **more)])  # type: ignore[arg-type]


def test_excerpt_and_caret() -> None:
    lines = one(span(2, 7, 11), expected="x", notes=("y",), fix="z", steps=("round 1 of eto",))
    assert lines.splitlines() == [
        "spec.yaml:2:7: error[AGC201]: wrong",
        "  |",
        "2 | name: demo",
        "  |       ^^^^",
        "  expected: x",
        "  note: y",
        "  in: round 1 of eto",
        "  help: z",
        "",
        "1 error",
    ]


def test_a_long_line_is_cut_around_the_place() -> None:
    lines = one(span(5, 301, 304)).splitlines()
    assert lines[2].endswith("END")
    assert len(lines[2]) < 170
    caret = lines[3].index("^")
    assert lines[2][caret : caret + 3] == "END"
    assert lines[3].count("^") == 3


def test_wide_characters_take_two_columns() -> None:
    lines = one(span(1, 5, 6, text="a: 评x")).splitlines()
    assert lines[3].index("^") == lines[2].index("x") + 1


def test_control_characters_cannot_reach_the_terminal() -> None:
    text = "a: \x1b[2Jboo\x07\r\nb: 1"
    rendered = render_text(
        [Diagnostic(code="AGC103", message="see \x1b[31m", span=span(1, 4, 9, text))]
    )
    assert "\x1b" not in rendered
    assert "\x07" not in rendered


def test_colour_changes_nothing_else() -> None:
    import re

    found = [Diagnostic(code="AGC201", message="wrong", span=span(2, 7, 11))]
    painted = render_text(found, colour=True)
    assert "\x1b[" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render_text(found)


def test_without_a_place() -> None:
    assert one(None).startswith("error[AGC201]: wrong\n")


def test_many_are_counted_but_not_shown() -> None:
    found = [Diagnostic(code="AGC201", message=f"m{n}") for n in range(70)]
    text = render_text(found)
    assert "m49" in text
    assert "m50" not in text
    assert "... and 20 more" in text
    assert text.endswith("70 errors\n")
    assert render_text([]) == ""


def test_json_holds_every_part() -> None:
    found = Diagnostic(
        code="AGC408",
        message="m",
        span=span(2, 7, 11),
        severity="warning",
        expected="e",
        notes=("n",),
        fix="f",
        steps=("round 2 of eto",),
    )
    document = json.loads(render_json([found, Diagnostic(code="AGC101", message="x")]))
    assert (document["errors"], document["warnings"]) == (1, 1)
    assert document["diagnostics"][0] == {
        "code": "AGC408",
        "severity": "warning",
        "message": "m",
        "file": "spec.yaml",
        "line": 2,
        "column": 7,
        "end_line": 2,
        "end_column": 11,
        "expected": "e",
        "notes": ["n"],
        "used_at": [],
        "steps": ["round 2 of eto"],
        "fix": "f",
    }
    assert document["diagnostics"][1]["line"] is None


@given(
    text=st.text(max_size=80),
    place=st.tuples(st.integers(1, 9), st.integers(1, 90), st.integers(1, 9), st.integers(1, 90)),
    message=st.text(max_size=20),
)
def test_any_place_in_any_text_can_be_shown(
    text: str, place: tuple[int, int, int, int], message: str
) -> None:
    line, column, end_line, end_column = place
    where = Span(Source("x", text), line, column, end_line, end_column)
    rendered = render_text([Diagnostic(code="AGC103", message=message, span=where)])
    assert rendered.startswith(f"x:{line}:{column}: error[AGC103]")
    assert len(rendered.splitlines()) <= 6


def test_the_sink_sorts_by_place_and_keeps_a_complaint_once() -> None:
    sink = Sink()
    sink.warning("AGC308", "later", span(3, 1, 2))
    assert not sink.has_errors
    sink.error("AGC201", "first", span(2, 7, 11), steps=("round 1 of eto",))
    sink.error("AGC201", "first", span(2, 7, 11), steps=("round 2 of eto",))
    sink.error("AGC306", "nowhere")
    assert sink.has_errors
    assert [found.message for found in sink.sorted()] == ["nowhere", "first", "later"]
    assert sink.sorted()[1].steps == ("round 1 of eto",)
