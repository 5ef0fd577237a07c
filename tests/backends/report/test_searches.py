"""The report on searches, revisions, mixtures: numbers from facts, dashes where there is none."""

from __future__ import annotations

import html
import re
from typing import Any

from agentc_backends.results.report.collect import collect
from agentc_backends.results.report.page import render_page

SEARCH = {
    "trees": 41, "errors": 1, "solved": 30, "reward_mean": 0.8125, "nodes": 2000, "leaves": 300,
    "model_calls": 7204, "environment_calls": 12345, "forks": 1800, "replayed_steps": 17,
    "prompt_tokens": 1234567, "completion_tokens": 43210, "ends": {"done": 280, "depth": 20},
}  # fmt: skip
REVISE = {
    "trees": 41, "leaves": 300, "pairs": 512, "rows": 620, "rows_by_part": {"good": 108,
    "revision": 512}, "revision_length": 2.25, "judgements": 400, "judgements_wanted": 1600,
    "unparsed_share": 0.375, "verified": 30, "unverified": {"other reward": 10},
}  # fmt: skip
MIX = {"agent_rows": 620, "general_rows": 155, "general_wanted": 155,
       "general_share_of_total": 0.2}  # fmt: skip


def page(store: Any, experiment: dict[str, Any]) -> str:
    return render_page(collect(store.inputs, experiment["rounds"]), experiment, trajectories=5)


def section(text: str) -> str:
    """The visible words of the section, one space between them."""
    [found] = re.findall(r'<section id="searches">(.*?)</section>', text, re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found)).split())


def test_searches_and_revisions_are_summed_up(example_store: Any, experiment: Any) -> None:
    trees = example_store.add("search", "search", "SearchTrees", {"trees.jsonl": ""}, facts=SEARCH)
    rows = {"rows.jsonl": ""}
    made = {"trees": [trees]}
    revised = example_store.add("fix", "revise", "SFTDataset", rows, inputs=made, facts=REVISE)
    example_store.add(
        "mixed", "mix", "SFTDataset", rows, inputs={"agent": [revised], "general": []}, facts=MIX
    )
    shown = page(example_store, experiment)
    words = section(shown)
    # 30 of the 40 trees that did not break off; thousands are set apart.
    assert "search 41 0.750 0.812 50.0, 7.5 7 204 12 345 1 800 17 1 234 567 + 43 210 1" in words
    # Three of four questions were answered by an equal beginning.
    assert "fix 41 300 512 revision 512, good 108 620 2.25 400 0.75 0.38 0.75" in words
    assert "mixed 620 155 155 0.200" in words
    assert 'href="#searches"' in shown


def test_facts_that_are_missing_or_odd_are_dashes(example_store: Any, experiment: Any) -> None:
    odd = {"trees": "many", "ends": [1], "solved": True}
    trees = example_store.add("search", "search", "SearchTrees", {"trees.jsonl": ""}, facts=odd)
    made = {"trees": [trees]}
    example_store.add("fix", "revise", "SFTDataset", {"rows.jsonl": ""}, inputs=made, facts={})
    words = section(page(example_store, experiment))
    assert "search – – – –, – – – – – – + – –" in words
    assert "fix – – –" in words


def test_an_experiment_without_a_search_has_no_such_section(
    example_store: Any, experiment: Any
) -> None:
    shown = page(example_store, experiment)
    assert "searches" not in shown
    assert "SearchTrees" not in shown
