"""Facts of jobs as the report reads them: one that another backend does not report, or reports as
something else, is None and shown as a dash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentc_backends.results.report.collect import ExperimentJob
from agentc_backends.results.report.tables import anchor


def named(node: ExperimentJob) -> dict[str, Any]:
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
