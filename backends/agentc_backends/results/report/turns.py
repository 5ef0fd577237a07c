"""The report on turns that were sampled, ranked and paired, and on hidden texts, of which it tells
sizes and never words. Neighbours: `searches.py`, `browser.py`.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

from agentc_backends.results.report.collect import Collection, ExperimentJob, iterate_lines
from agentc_backends.results.report.facts import counts, facts_of, named, number, share

EXAMPLES = 6
"""Turns of each ranking that the page shows."""
ENDS_SHOWN = 3
"""Candidates shown of each end of a ranking."""
TEXT_LIMIT = 2_000


def sampled(collection: Collection) -> list[dict[str, Any]]:
    """One row for each stage that drew candidates: how many, and how far they differ."""
    rows = []
    for node in collection.of_type("Candidates"):
        facts = facts_of(node)
        replies = number(facts, "replies")
        rows.append(
            {
                **named(node),
                "turns": number(facts, "rows"),
                "episodes": number(facts, "trajectories"),
                "replies": replies,
                "unique": share(number(facts, "unique"), replies),
                "alike": number(facts, "alike"),
                "tokens_read": number(facts, "prompt_tokens"),
                "tokens_written": number(facts, "completion_tokens"),
                "overflow": counts(facts, "ends").get("overflow", 0),
                "errors": number(facts, "errors"),
            }
        )
    return rows


def ranked(collection: Collection) -> list[dict[str, Any]]:
    """One row for each ranking: how far the critic sets candidates apart, and turns that show it.

    `taken` is where it puts what the episode went on with: 0 the worst, 1 the best, 0.5 by chance.
    """
    rows = []
    for node in collection.of_type("RewardedTurns"):
        facts = facts_of(node)
        rows.append(
            {
                **named(node),
                "turns": number(facts, "rows"),
                "ranked": number(facts, "ranked"),
                "spread": number(facts, "spread_mean"),
                "flat": number(facts, "flat"),
                "taken": number(facts, "rank_of_taken"),
                "tokens": number(facts, "scored_tokens"),
                "examples": _examples(node),
            }
        )
    return rows


def turn_pairs(collection: Collection) -> list[dict[str, Any]]:
    """One row for each stage that paired candidates of turns: drawn, kept, and why not."""
    rows = []
    for node in collection.of_type("PreferencePairs"):
        facts = facts_of(node)
        if number(facts, "ranked") is None:
            continue  # pairs of episodes
        names = ("ranked", "drawn", "pairs")
        left = {**counts(facts, "dropped"), **counts(facts, "skipped")}
        rows.append(
            {
                **named(node),
                **{name: number(facts, name) for name in names},
                "left_out": {name: count for name, count in left.items() if count},
            }
        )
    return rows


def hidden_texts(collection: Collection) -> list[dict[str, Any]]:
    """One row for each stage that collected hidden texts: their number and sizes in characters."""
    rows = []
    for node in collection.of_type("PrivilegedInformation"):
        facts = facts_of(node)
        texts = number(facts, "texts")
        rows.append(
            {
                **named(node),
                "texts": texts,
                "mean": share(number(facts, "characters"), texts),
                "longest": number(facts, "longest_text"),
            }
        )
    return rows


def _examples(node: ExperimentJob) -> list[dict[str, Any]]:
    """The turns whose candidates the critic sets furthest apart, in the order of the rows. The
    file is read line by line: at a paper's scale it does not fit into memory."""
    path = node.folder / "data" / "turns.jsonl"
    if not path.is_file():
        return []
    rows = (row for row in iterate_lines(path) if len(row.get("candidates") or ()) > 1)
    widest = heapq.nlargest(EXAMPLES, enumerate(rows), key=lambda item: item[1]["spread"])
    return [_example(row) for _, row in sorted(widest, key=lambda item: item[0])]


def _example(row: Mapping[str, Any]) -> dict[str, Any]:
    """A turn: what was said last before it, and the candidates at both ends, each text once."""
    best: dict[str, Mapping[str, Any]] = {}
    for candidate in sorted(row["candidates"], key=lambda c: -c["advantage"]):
        best.setdefault(candidate["text"], candidate)
    order = [
        {
            "advantage": candidate["advantage"],
            "text": _short(text),
            "taken": text == row["taken"],
        }
        for text, candidate in best.items()
    ]
    hidden = max(0, len(order) - 2 * ENDS_SHOWN)
    if hidden:
        order = order[:ENDS_SHOWN] + order[-ENDS_SHOWN:]
    return {
        "id": row["id"],
        "spread": row["spread"],
        "said": _short(row["prompt"][-1]["content"]),
        "candidates": order,
        "hidden": hidden,
    }


def _short(text: str) -> str:
    over = len(text) - TEXT_LIMIT
    return text if over <= 0 else f"{text[:TEXT_LIMIT]}\n... {over} more characters"
