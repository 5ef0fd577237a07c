"""Carried names that stand for lists: what rounds gather, and names that are handed on."""

from __future__ import annotations

import pytest
from tests.support.rounds_spec import HEAD, STAGES, Read, codes, module

from agentc.front import expand_repeat

POLICY = "        policy: {from: sft, next: dpo}\n"


def with_carried(line: str, *changes: tuple[str, str]) -> str:
    """The spec with a further carried name."""
    text = HEAD + STAGES.replace(POLICY, POLICY + f"        {line}\n")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("start", "written", "pairs_of"),
    [
        ("[]", "[past, pairs]", ([1], [1, 2], [1, 2, 3])),
        ("[]", "[pairs, past]", ([1], [1, 2], [2, 1, 3])),
        ("[other]", "[past, pairs]", (["other", 1], ["other", 1, 2], ["other", 1, 2, 3])),
        ("other", "[past, pairs]", (["other", 1], ["other", 1, 2], ["other", 1, 2, 3])),
        ("[other]", "[pairs]", (["other", 1], [1, 2], [2, 3])),
        # What comes on two ways counts once.
        ("[other]", "[past, past, pairs]", (["other", 1], ["other", 1, 2], ["other", 1, 2, 3])),
    ],
)
def test_a_list_gathers_what_all_rounds_before_made(
    read_text: Read, start: str, written: str, pairs_of: tuple[list[int | str], ...]
) -> None:
    other = "  other: {kind: pair, expert: expert, rollouts: tried}\n"
    tried = "  tried: {kind: rollout, model: sft, split: train}\n"
    text = with_carried(
        f"past: {{from: {start}, next: {written}}}",
        ("data: pairs\n", "data: [past, pairs]\n"),
        ("  eto:\n", tried + other + "  eto:\n"),
    )
    stages = module(read_text, text).stages
    for number, expected in enumerate(pairs_of, start=1):
        ids = tuple(name if isinstance(name, str) else f"eto.{name}.pairs" for name in expected)
        assert stages[f"eto.{number}.dpo"].inputs["data"] == ids
        assert stages[f"eto.{number}.dpo"].inputs["model"] == (
            ("sft",) if number == 1 else (f"eto.{number - 1}.dpo",)
        )


def test_a_carried_name_may_be_handed_on(read_text: Read) -> None:
    text = with_carried(
        "before: {from: base, next: policy}", ("reference: sft", "reference: before")
    )
    stages = module(read_text, text).stages
    found = [stages[f"eto.{number}.dpo"].inputs["reference"] for number in (1, 2, 3)]
    assert found == [("base",), ("sft",), ("eto.1.dpo",)]


@pytest.mark.parametrize(
    ("line", "use", "expected"),
    [
        ("past: {from: [], next: [past, pairs]}", "data: past", ["AGC205"]),
        ("past: {from: [], next: []}", "data: [past, pairs]", ["AGC409"]),
        ("past: {from: [], next: [past]}", "data: [past, pairs]", ["AGC409"]),
        ("past: {from: expert, next: past}", "data: pairs", ["AGC409"]),
        ("past: {from: [], next: [past, pair]}", "data: [past, pairs]", ["AGC409"]),
        ("past: {from: [], next: [past, [pairs]]}", "data: [past, pairs]", ["AGC409"]),
        ("past: {from: [exprt], next: [past, pairs]}", "data: [past, pairs]", ["AGC401"]),
        # Pairs of three rounds are three, and a reference is one.
        ("past: {from: base, next: [past, dpo]}", "data: pairs; reference: past", ["AGC404"] * 2),
    ],
)
def test_what_cannot_be_carried(line: str, use: str, expected: list[str], read_text: Read) -> None:
    use, *more = use.split("; ")
    changes = [("data: pairs\n", f"{use}\n")]
    changes += [("reference: sft", each) for each in more]
    assert codes(read_text, with_carried(line, *changes)) == expected


def test_no_more_is_gathered_than_a_plan_can_hold(
    read_text: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = with_carried(
        "past: {from: [], next: [past, pairs]}", ("data: pairs\n", "data: [past, pairs]\n")
    )
    # Four stages a round; two names stand for 2, 3 and 4 parts.
    monkeypatch.setattr(expand_repeat, "MOST_CARRIED", 36)
    module(read_text, text)
    monkeypatch.setattr(expand_repeat, "MOST_CARRIED", 35)
    assert codes(read_text, text)[0] == "AGC105"
