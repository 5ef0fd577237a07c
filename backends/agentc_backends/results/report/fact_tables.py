"""Tables of a report from the facts of jobs: searches, revisions, mixtures, hidden texts, turns
that were sampled, ranked and paired. Of hidden texts sizes are shown, never words.

A fact that another backend does not report, or reports as something else, is None and shown as a
dash."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

from agentc.program.artifact_files import TURNS_FILE
from agentc_backends.results.report.collect import Collection, ExperimentJob, anchor, iterate_lines


def job_cells(node: ExperimentJob) -> dict[str, Any]:
    """How a row names its job, and where its settings stand."""
    return {"name": node.name, "anchor": anchor(node)}


def facts_of(node: ExperimentJob) -> Mapping[str, Any]:
    """What the job said of its result."""
    found: Mapping[str, Any] = node.manifest.get("facts") or {}
    return found


def number(facts: Mapping[str, Any], name: str) -> float | None:
    """A fact that is a number."""
    value = facts.get(name)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def counts(facts: Mapping[str, Any], name: str) -> dict[str, int]:
    """A fact that counts by name; what is no count is left out."""
    value = facts.get(name)
    return {k: v for k, v in value.items() if isinstance(v, int)} if isinstance(value, dict) else {}


def share(part: float | None, whole: float | None) -> float | None:
    """None where one of them is not known, or there is nothing to have a share of."""
    return None if part is None or not whole else part / whole


_PARTS = ("revision", "direct", "good", "optimal")


def searches(collection: Collection) -> list[dict[str, Any]]:
    """One row for each search: what its trees found, and what they cost."""
    rows = []
    for node in collection.of_type("SearchTrees"):
        facts = facts_of(node)
        trees = number(facts, "trees")
        searched = None if trees is None else trees - (number(facts, "errors") or 0)
        copied, replayed = number(facts, "forks"), number(facts, "replayed_steps")
        rows.append(
            {
                **job_cells(node),
                "trees": trees,
                "errors": number(facts, "errors"),
                "solved": share(number(facts, "solved"), searched),
                "reward": number(facts, "reward_mean"),
                "nodes": share(number(facts, "nodes"), searched),
                "leaves": share(number(facts, "leaves"), searched),
                "model_calls": number(facts, "model_calls"),
                "environment_calls": number(facts, "environment_calls"),
                "copied": copied,
                "replayed": replayed,
                "tokens_read": number(facts, "prompt_tokens"),
                "tokens_written": number(facts, "completion_tokens"),
                "ends": counts(facts, "ends"),
            }
        )
    return rows


def revisions(collection: Collection) -> list[dict[str, Any]]:
    """One row for each stage that revised trees: its rows by part, and how the judge did."""
    rows = []
    for node in _data_sets(collection, of_trees=True):
        facts = facts_of(node)
        by_part = counts(facts, "rows_by_part")
        asked, wanted = number(facts, "judgements"), number(facts, "judgements_wanted")
        verified = number(facts, "verified")
        tried = sum(counts(facts, "unverified").values()) + (verified or 0)
        rows.append(
            {
                **job_cells(node),
                "trees": number(facts, "trees"),
                "leaves": number(facts, "leaves"),
                "pairs": number(facts, "pairs"),
                "parts": {part: by_part[part] for part in _PARTS if part in by_part},
                "rows": number(facts, "rows"),
                "length": number(facts, "revision_length"),
                "judgements": asked,
                "spared": None if not wanted or asked is None else 1 - asked / wanted,
                "unparsed": number(facts, "unparsed_share"),
                "verified": share(verified, tried or None),
            }
        )
    return rows


def mixtures(collection: Collection) -> list[dict[str, Any]]:
    """One row for each mixture: agent rows, general rows, and the share that came out."""
    rows = []
    for node in _data_sets(collection, of_trees=False):
        facts = facts_of(node)
        names = ("agent_rows", "general_rows", "general_wanted", "general_share_of_total")
        rows.append({**job_cells(node), **{name: number(facts, name) for name in names}})
    return rows


def _data_sets(collection: Collection, *, of_trees: bool) -> list[ExperimentJob]:
    """Data sets that were made of search trees, or of other rows; those from outside have no
    inputs. The trees themselves may be gone: the manifest keeps the name of the input."""
    made = [node for node in collection.of_type("SFTDataset") if node.parents]
    return [node for node in made if any(role == "trees" for role, _ in node.parents) is of_trees]


EXAMPLES = 6
"""Turns of each ranking that the page shows."""
ENDS_DRAWN = 3
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
                **job_cells(node),
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
                **job_cells(node),
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
                **job_cells(node),
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
                **job_cells(node),
                "texts": texts,
                "mean": share(number(facts, "characters"), texts),
                "longest": number(facts, "longest_text"),
            }
        )
    return rows


def _examples(node: ExperimentJob) -> list[dict[str, Any]]:
    """The turns whose candidates the critic sets furthest apart, in the order of the rows. The
    file is read line by line: at a paper's scale it does not fit into memory."""
    path = node.folder / "data" / TURNS_FILE
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
    hidden = max(0, len(order) - 2 * ENDS_DRAWN)
    if hidden:
        order = order[:ENDS_DRAWN] + order[-ENDS_DRAWN:]
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
