"""Tables of a report on tree searches, revisions and mixtures, from the facts of their jobs.

A fact that another backend does not report is None, and shown as a dash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentc_backends.results.report.collect import Collection, ExperimentJob
from agentc_backends.results.report.tables import anchor

_PARTS = ("revision", "direct", "good", "optimal")


def searches(collection: Collection) -> list[dict[str, Any]]:
    """One row for each search: what its trees found, and what they cost."""
    rows = []
    for node in collection.of_type("SearchTrees"):
        facts = _facts(node)
        trees = _number(facts, "trees")
        searched = None if trees is None else trees - (_number(facts, "errors") or 0)
        copied, replayed = _number(facts, "forks"), _number(facts, "replayed_steps")
        rows.append(
            {
                **_named(node),
                "trees": trees,
                "errors": _number(facts, "errors"),
                "solved": _share(_number(facts, "solved"), searched),
                "reward": _number(facts, "reward_mean"),
                "nodes": _share(_number(facts, "nodes"), searched),
                "leaves": _share(_number(facts, "leaves"), searched),
                "model_calls": _number(facts, "model_calls"),
                "environment_calls": _number(facts, "environment_calls"),
                "copied": copied,
                "replayed": replayed,
                "tokens_read": _number(facts, "prompt_tokens"),
                "tokens_written": _number(facts, "completion_tokens"),
                "ends": _counts(facts, "ends"),
            }
        )
    return rows


def revisions(collection: Collection) -> list[dict[str, Any]]:
    """One row for each stage that revised trees: its rows by part, and how the judge did."""
    rows = []
    for node in _data_sets(collection, of_trees=True):
        facts = _facts(node)
        by_part = _counts(facts, "rows_by_part")
        asked, wanted = _number(facts, "judgements"), _number(facts, "judgements_wanted")
        verified = _number(facts, "verified")
        tried = sum(_counts(facts, "unverified").values()) + (verified or 0)
        rows.append(
            {
                **_named(node),
                "trees": _number(facts, "trees"),
                "leaves": _number(facts, "leaves"),
                "pairs": _number(facts, "pairs"),
                "parts": {part: by_part[part] for part in _PARTS if part in by_part},
                "rows": _number(facts, "rows"),
                "length": _number(facts, "revision_length"),
                "judgements": asked,
                "spared": None if not wanted or asked is None else 1 - asked / wanted,
                "unparsed": _number(facts, "unparsed_share"),
                "verified": _share(verified, tried or None),
            }
        )
    return rows


def mixtures(collection: Collection) -> list[dict[str, Any]]:
    """One row for each mixture: agent rows, general rows, and the share that came out."""
    rows = []
    for node in _data_sets(collection, of_trees=False):
        facts = _facts(node)
        names = ("agent_rows", "general_rows", "general_wanted", "general_share_of_total")
        rows.append({**_named(node), **{name: _number(facts, name) for name in names}})
    return rows


def _data_sets(collection: Collection, *, of_trees: bool) -> list[ExperimentJob]:
    """Data sets that were made of search trees, or of other rows; those from outside have no
    inputs. The trees themselves may be gone: the manifest keeps the name of the input."""
    made = [node for node in collection.of_type("SFTDataset") if node.parents]
    return [node for node in made if any(role == "trees" for role, _ in node.parents) is of_trees]


def _named(node: ExperimentJob) -> dict[str, Any]:
    return {"name": node.name, "anchor": anchor(node)}


def _facts(node: ExperimentJob) -> Mapping[str, Any]:
    found: Mapping[str, Any] = node.manifest.get("facts") or {}
    return found


def _number(facts: Mapping[str, Any], name: str) -> float | None:
    value = facts.get(name)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _counts(facts: Mapping[str, Any], name: str) -> dict[str, int]:
    value = facts.get(name)
    return {k: v for k, v in value.items() if isinstance(v, int)} if isinstance(value, dict) else {}


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole
