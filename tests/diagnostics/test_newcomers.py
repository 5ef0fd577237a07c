"""Slips of people who write their first specs: the cause is named first, where it is, and nothing
that only follows from it is reported. `newcomers/slips.py` has them, `base.yaml` what they change;
`newcomers/programs.py` and `programs.yaml` those of servers and programs.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from pathlib import Path

import pytest
from tests.diagnostics.newcomers.programs import FILES, PROGRAMS
from tests.diagnostics.newcomers.slips import SLIPS, Slip

from agentc.backend_api import BackendTable, load_backends
from agentc.compilation import compile_spec
from agentc.diagnostics import Diagnostic, render_text

_FOLDER = Path(__file__).parent / "newcomers"
_BASES = {
    name: (_FOLDER / name).read_text(encoding="utf-8") for name in ("base.yaml", "programs.yaml")
}
_CASES = [
    *(pytest.param("base.yaml", slip, id=slip.name) for slip in SLIPS),
    *(pytest.param("programs.yaml", slip, id=slip.name) for slip in PROGRAMS),
]
_SOURCE_LINE = re.compile(r"\s*\d* \|")


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all specs, with the files that they name."""
    found = tmp_path_factory.mktemp("newcomers")
    for name, text in {**_BASES, **FILES}.items():
        place = found / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return found


@pytest.mark.parametrize("base", _BASES)
def test_what_they_change_is_right(base: str, folder: Path, table: BackendTable) -> None:
    found = compile_spec(folder / base, {}, table, every_scale=True).diagnostics
    assert found == (), render_text(found)


@pytest.mark.parametrize(("base", "slip"), _CASES)
def test_the_cause_comes_first_and_alone(
    base: str, slip: Slip, folder: Path, table: BackendTable
) -> None:
    text = _BASES[base]
    for old, new in slip.edits:
        assert old in text
        text = text.replace(old, new, 1)
    spec = folder / "slip.yaml"
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
        assert near or first.span.line in _changed(_BASES[base], text), said


def _words(found: Diagnostic) -> str:
    """What is said of it, without the line of the spec that is shown."""
    lines = render_text([found]).split("\n")
    return "\n".join(line for line in lines if not _SOURCE_LINE.match(line))


def _changed(base: str, text: str) -> set[int]:
    """The lines that differ from the base's, and the one before each."""
    lines: set[int] = set()
    matcher = SequenceMatcher(None, base.split("\n"), text.split("\n"), autojunk=False)
    for tag, _, _, start, end in matcher.get_opcodes():
        if tag != "equal":
            lines |= set(range(start, max(end, start + 1) + 1))
    return lines
