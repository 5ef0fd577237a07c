"""Tables of a report on tree searches, revisions and mixtures, from the facts of their jobs."""

from __future__ import annotations

from typing import Any

from agentc_backends.results.report.collect import Collection, ExperimentJob
from agentc_backends.results.report.facts import counts, facts_of, named, number, share

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
                **named(node),
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
                **named(node),
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
        rows.append({**named(node), **{name: number(facts, name) for name in names}})
    return rows


def _data_sets(collection: Collection, *, of_trees: bool) -> list[ExperimentJob]:
    """Data sets that were made of search trees, or of other rows; those from outside have no
    inputs. The trees themselves may be gone: the manifest keeps the name of the input."""
    made = [node for node in collection.of_type("SFTDataset") if node.parents]
    return [node for node in made if any(role == "trees" for role, _ in node.parents) is of_trees]
