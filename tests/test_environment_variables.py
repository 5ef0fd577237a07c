"""docs/environment_variables.md names every variable of agentc, and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/environment_variables.md"
_NAME = re.compile(r"\bAGENTC_[A-Z][A-Z_]*[A-Z]\b")
_FAMILIES = ("AGENTC_PYTHON", "AGENTC_REMOTE")
"""Names that are continued: by a version, by the name of an entry."""
_FORMER = {"AGENTC_ENVIRONMENTS"}
"""Names that are refused where they are set."""


def _read(*folders: str) -> set[str]:
    files = [ROOT / "Snakefile", ROOT / "Makefile", ROOT / ".ci/run"]
    for folder in folders:
        files += [path for path in (ROOT / folder).rglob("*.py") if path != Path(__file__)]
    names = {name for file in files for name in _NAME.findall(file.read_text("utf-8"))}
    return {next((f for f in _FAMILIES if name.startswith(f)), name) for name in names}


def _described() -> set[str]:
    names = _NAME.findall(PAGE.read_text("utf-8"))
    return {next((f for f in _FAMILIES if name.startswith(f)), name) for name in names}


def test_each_variable_of_the_code_is_on_the_page() -> None:
    assert _read("compiler", "backends", "tests", "benchmarks") - _FORMER <= _described()


def test_the_page_names_no_variable_that_nothing_reads() -> None:
    assert _described() <= _read("compiler", "backends", "tests", "benchmarks")
