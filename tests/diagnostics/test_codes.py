"""The table of codes: complete, without doubles, and each example gets its own code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from agentc.diagnostics import CODES, Code, code_named

OF_THE_FRONT_END = ("1", "2", "3", "4")
WITHOUT_EXAMPLE = {"AGC101", "AGC102", "AGC105", "AGC306"}


def test_codes_are_distinct() -> None:
    names = [code.code for code in CODES]
    assert all(count == 1 for count in Counter(names).values())
    assert all(re.fullmatch(r"AGC[1-7]\d\d", name) for name in names)


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


@pytest.mark.parametrize(
    "code",
    [code for code in CODES if code.code[3] in OF_THE_FRONT_END],
    ids=lambda code: code.code,
)
def test_the_example_gets_its_code(code: Code, read_text: Callable[..., tuple]) -> None:
    if not code.example:
        assert code.code in WITHOUT_EXAMPLE
        return
    _, _, sink = read_text(code.example)
    assert code.code in {found.code for found in sink.sorted()}
