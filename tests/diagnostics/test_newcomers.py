"""Slips of people who write their first specs: the cause is named first, where it is, and nothing
that only follows from it is reported. `newcomers/slips.py` has them, `base.yaml` what they change.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from pathlib import Path

import pytest
from tests.diagnostics.newcomers.slips import SLIPS, Slip

from agentc.backend_api import BackendTable, load_backends
from agentc.compilation import compile_spec
from agentc.diagnostics import Diagnostic, render_text

BASE = (Path(__file__).parent / "newcomers" / "base.yaml").read_text(encoding="utf-8")
_SOURCE_LINE = re.compile(r"\s*\d* \|")


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


def test_what_they_change_is_right(tmp_path: Path, table: BackendTable) -> None:
    spec = tmp_path / "base.yaml"
    spec.write_text(BASE, encoding="utf-8")
    assert compile_spec(spec, {}, table, every_scale=True).diagnostics == ()


@pytest.mark.parametrize("slip", SLIPS, ids=[slip.name for slip in SLIPS])
def test_the_cause_comes_first_and_alone(slip: Slip, tmp_path: Path, table: BackendTable) -> None:
    text = BASE
    for old, new in slip.edits:
        assert old in text
        text = text.replace(old, new, 1)
    (tmp_path / "base.yaml").write_text(BASE, encoding="utf-8")
    spec = tmp_path / "slip.yaml"
    spec.write_text(text, encoding="utf-8")

    found = compile_spec(spec, dict(slip.params), table, every_scale=True).diagnostics

    errors = [each for each in found if each.severity == "error"]
    assert len(errors) <= slip.most, render_text(errors)
    first = errors[0] if slip.most else found[0]
    said = _words(first)
    assert [word for word in slip.words if word not in said] == [], said
    if not slip.params:
        assert first.span is not None
        lines = first.span.source.text.split("\n")
        near = slip.line == lines[first.span.line - 1] if slip.line else None
        assert near or first.span.line in _changed(text), said


def _words(found: Diagnostic) -> str:
    """What is said of it, without the line of the spec that is shown."""
    lines = render_text([found]).split("\n")
    return "\n".join(line for line in lines if not _SOURCE_LINE.match(line))


def _changed(text: str) -> set[int]:
    """The lines that differ from the base's, and the one before each."""
    lines: set[int] = set()
    matcher = SequenceMatcher(None, BASE.split("\n"), text.split("\n"), autojunk=False)
    for tag, _, _, start, end in matcher.get_opcodes():
        if tag != "equal":
            lines |= set(range(start, max(end, start + 1) + 1))
    return lines
