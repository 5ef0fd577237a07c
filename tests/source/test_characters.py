"""Characters that look like others or cannot be seen."""

from __future__ import annotations

import pytest

from agentc.diagnostics import Sink
from agentc.diagnostics.diagnostic import Source
from agentc.diagnostics.odd_characters import (
    intended_character,
    odd_characters,
    plain,
    without_accents,
)
from agentc.source.load import load_bytes, load_text
from agentc.source.yaml_cause import _WORK, find_cause


@pytest.mark.parametrize(
    ("character", "meant"),
    [
        ("\u0456", "i"),
        ("\uff1a", ":"),
        ("\u00a0", " "),
        ("\u3000", " "),
        ("\u201c", '"'),
        ("\u2019", "'"),
        ("\u200b", ""),
        ("\ufeff", ""),
        ("\u00ad", ""),
        ("\uff53", "s"),
        ("\u0663", "3"),
        ("\u2011", "-"),
        ("\u2076", None),  # 10⁶ is not 106
        ("\u00bd", None),
        ("\u00e4", None),
        ("\U0001f680", None),
        ("\u4e2d", None),
    ],
)
def test_what_passes_for_ascii(character: str, meant: str | None) -> None:
    assert intended_character(character) == meant


def test_a_character_is_named_with_its_place() -> None:
    (odd,) = odd_characters("k\u0456nd")
    assert (odd.index, odd.meant) == (1, "i")
    assert odd.name == "U+0456 CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I"
    assert plain("k\u0456nd\u200b") == "kind"
    assert without_accents("untr\u00e4ined") == "untrained"


def test_text_in_any_script_is_nobodys_fault() -> None:
    sink = Sink()
    text = "description: \u201c\u042d\u0442\u043e\u201d \u2013 \u4e2d\u6587\u3001\u00a0ok\n"
    assert load_text(Source("spec", text), sink) is not None
    assert sink.sorted() == ()


@pytest.mark.parametrize("unit", ["a\u00a0b: 'x\n", "k\uff1a 1\n", '- "\n', "a = 1\n", "k:v\n"])
def test_the_search_for_a_cause_is_bounded(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentc.source import yaml_cause

    work: list[int] = []
    parse = yaml_cause._first_error

    def counting(lines: list[str]) -> tuple[int, int] | None:
        work.append(sum(map(len, lines)))
        return parse(lines)

    monkeypatch.setattr(yaml_cause, "_first_error", counting)
    text = "a: 1\nb: {c\n" + unit * (500_000 // len(unit))
    sink = Sink()
    load_bytes(text.encode(), "spec", sink)
    assert sink.has_errors
    assert sum(work) <= _WORK + 2 * len(text)


def test_a_guess_that_does_not_help_is_no_cause() -> None:
    lines = ["a: \u201cb\u201d", "c: [1, 2"]
    assert find_cause(lines, (2, 0), 1) is None
