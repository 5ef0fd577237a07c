"""The table of codes: complete, without doubles, and each example gets its own code
until it is fixed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import agentc.diagnostics
from agentc.backend_api import BackendTable, load_backends
from agentc.cli import main
from agentc.diagnostics import Code
from agentc.reference.codes import CODES, code_named
from agentc.reference.error_pages import error_page, read_example

EXAMPLES = Path(agentc.diagnostics.__file__).parent / "examples"


@pytest.fixture(scope="module")
def table() -> BackendTable:
    """The installed backends: examples are of what people have."""
    return load_backends()


def test_codes_are_distinct() -> None:
    names = [code.code for code in CODES]
    assert all(count == 1 for count in Counter(names).values())
    assert all(re.fullmatch(r"AGC[1-8]\d\d", name) for name in names)


def test_every_code_that_is_reported_is_in_the_table(repository: Path) -> None:
    known = {code.code for code in CODES}
    reported: dict[str, str] = {}
    for source in ("compiler", "backends"):
        for file in (repository / source).rglob("*.py"):
            if "codes" not in file.parts:
                found = re.findall(r'"(AGC\d{3})"', file.read_text())
                reported |= dict.fromkeys(found, str(file))
    assert {code: file for code, file in reported.items() if code not in known} == {}
    # Nothing is documented that no pass reports.
    assert known - set(reported) == set()


def test_a_code_is_found_whatever_its_case() -> None:
    assert code_named("agc201") is code_named("AGC201")
    assert code_named("AGC999") is None


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.code)
def test_the_example_gets_its_code_until_it_is_mended(code: Code, table: BackendTable) -> None:
    example = read_example(code, table)
    if example is None:
        assert not (EXAMPLES / code.code).exists()
        assert re.fullmatch(r"[A-Z].*\.", code.no_example)  # it stands alone on the page
        return
    # No other fault than the one that is explained.
    assert {found.code for found in example.failing.diagnostics} == {code.code}
    if example.fixed is None:
        assert example.remedy
    else:
        assert example.fixed.diagnostics == ()


def test_every_example_belongs_to_a_code() -> None:
    assert {folder.name for folder in EXAMPLES.iterdir()} <= {code.code for code in CODES}


def test_a_page_shows_what_agentc_prints(tmp_path: Path, table: BackendTable) -> None:
    code = code_named("AGC201")
    assert code is not None
    shutil.copy(EXAMPLES / "AGC201" / "failing.yaml", tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", "from agentc.cli import main; main(['check', 'failing.yaml'])"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    printed, rest = done.stderr.split("\n\n", 1)
    assert "`agentc explain AGC201`" in rest
    assert printed in error_page(code, table)


def test_explain_shows_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "agc204"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("AGC204: not one of the choices\n")
    assert "        scheduler: cosin\n" in said
    assert "failing.yaml:22:16: error[AGC204]" in said
    assert "        scheduler: cosine\n" in said
    assert "fixed.yaml: no errors" in said
    assert main(["explain", "204"]) == 0
    assert capsys.readouterr().out == said
    assert main(["explain", "AGC999"]) == 5
