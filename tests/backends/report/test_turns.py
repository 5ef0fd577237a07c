"""The report on sampled, ranked and paired turns, and on hidden texts: numbers, a few turns that
the critic tells apart, and no word of what is hidden."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from agentc_backends.results.report.collect import collect
from agentc_backends.results.report.fact_tables import EXAMPLES
from agentc_backends.results.report.page import render_page

SAMPLE = {"rows": 9, "trajectories": 4, "replies": 18, "unique": 9, "alike": 1, "errors": 0,
          "prompt_tokens": 1200, "completion_tokens": 90, "ends": {"overflow": 1}}  # fmt: skip
RANK = {"rows": 9, "ranked": 8, "spread_mean": 1.25, "flat": 1, "rank_of_taken": 0.625,
        "scored_tokens": 4321}  # fmt: skip
PAIRS = {"ranked": 8, "drawn": 32, "pairs": 30, "dropped": {"tie": 0, "duplicate": 2},
         "skipped": {"one_candidate": 1}}  # fmt: skip


def turn(number: int, advantages: dict[str, float], taken: str = "b") -> dict[str, Any]:
    candidates = [{"text": text, "advantage": value} for text, value in advantages.items()]
    values = list(advantages.values())
    return {
        "id": f"t{number}#0@0", "prompt": [{"role": "user", "content": f"turn <{number}>"}],
        "taken": taken, "candidates": candidates, "spread": max(values) - min(values),
    }  # fmt: skip


def fill(store: Any, turns: list[dict[str, Any]]) -> None:
    hidden = {"id": "t1", "text": "the reference"}
    store.add(
        "hidden", "privileged", "PrivilegedInformation",
        {"privileged.jsonl": json.dumps(hidden)},
        facts={"texts": 4, "characters": 52, "longest_text": 13},
    )  # fmt: skip
    drawn = store.add("drawn", "sample", "Candidates", {"candidates.jsonl": ""}, facts=SAMPLE)
    ranked = store.add(
        "ranked", "rank", "RewardedTurns",
        {"turns.jsonl": "".join(json.dumps(row) + "\n" for row in turns)},
        inputs={"candidates": [drawn]}, facts=RANK,
    )  # fmt: skip
    store.add(
        "paired", "pair", "PreferencePairs", {"pairs.jsonl": ""},
        inputs={"turns": [ranked]}, facts=PAIRS,
    )  # fmt: skip


def section(store: Any, experiment: dict[str, Any]) -> tuple[str, str]:
    """Its visible words, one space between them, and its markup."""
    page = render_page(collect(store.inputs, experiment["rounds"]), experiment, trajectories=5)
    assert 'href="#turns"' in page
    assert "the reference" not in page
    [found] = re.findall(r'<section id="turns">(.*?)</section>', page, re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found)).split()), found


def test_each_step_has_its_numbers(example_store: Any, experiment: Any) -> None:
    fill(example_store, [turn(1, {"a": 1.0, "b": -0.5})])
    words, _ = section(example_store, experiment)
    assert "hidden 4 13 13" in words
    assert "drawn 4 9 18 0.500 1 1 1 200 + 90 0" in words
    assert "ranked 9 8 1.250 1 0.625 4 321" in words
    assert "paired 8 32 30 duplicate 2, one candidate 1" in words


def test_turns_that_the_critic_tells_apart_are_shown(example_store: Any, experiment: Any) -> None:
    flat = [turn(number, {"a": 0.1, "b": 0.0}) for number in range(EXAMPLES)]
    wide = turn(99, {"low": -2.0, "b": 0.0, "<i>high</i>": 3.0})
    fill(example_store, [*flat, wide, {**turn(100, {"x": 0}), "candidates": []}])
    words, markup = section(example_store, experiment)
    assert words.count("the message before it") == EXAMPLES
    assert (
        "t99#0@0 spread 5.000 the message before it turn <99> advantage 3.000 <i>high</i> "
        "advantage 0.000 · as in the episode b advantage −2.000 low"
    ) in words
    assert "<i>high" not in markup


def test_of_many_candidates_both_ends_are_shown(example_store: Any, experiment: Any) -> None:
    many = {f"reply {n}": float(n) for n in range(9)}
    fill(example_store, [turn(1, many)])
    words, _ = section(example_store, experiment)
    shown = re.findall(r"reply (\d)", words)
    assert shown == ["8", "7", "6", "2", "1", "0"]
    assert "reply 6 3 between them. advantage 2.000 reply 2" in words
