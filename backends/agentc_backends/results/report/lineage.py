"""Follows checkpoints from model to model, so that a learning curve has its points in order."""

from __future__ import annotations

from typing import Any

from agentc_backends.results.report.collect import Collection, ExperimentJob
from agentc_backends.results.report.tables import anchor

_FROM = ("model", "policy", "run")
_MODELS = ("Checkpoint", "PolicyRun")


def learning_curves(collection: Collection) -> list[dict[str, Any]]:
    """One chart for each (environment, split) with two evaluations or more: lines that follow a
    lineage of checkpoints, each point an evaluation of one of them.

    A line ends at a checkpoint that no other evaluated one descends from, so that seeds and arms
    of a sweep give lines of their own, which share their beginnings.
    """
    evaluated: dict[str, dict[str, tuple[ExperimentJob, dict[str, Any]]]] = {}
    for node in collection.of_type("Metrics"):
        metrics = node.document("metrics.json")
        policy = _policy(node, collection)
        if policy is not None:
            evaluated.setdefault(metrics["name"], {})[policy.object] = (node, metrics)
    charts = []
    for name, points in evaluated.items():
        lines = [line for line in _lines(points, collection) if len(line) > 1]
        if lines:
            charts.append({"name": name, "lines": lines})
    return charts


def _lines(
    points: dict[str, tuple[ExperimentJob, dict[str, Any]]], collection: Collection
) -> list[list[dict[str, Any]]]:
    chains = {policy: _chain(collection.by_object[policy], collection) for policy in points}
    inner = {ancestor.object for chain in chains.values() for ancestor in chain[:-1]}
    lines = []
    for policy, chain in chains.items():
        if policy in inner:
            continue
        line = []
        for step in chain:
            if step.object in points:
                node, metrics = points[step.object]
                line.append(
                    {
                        "label": step.name,
                        "evaluation": node.name,
                        "anchor": anchor(node),
                        "metrics": [metrics],
                        "reward": metrics["reward"],
                        "success": metrics["success"],
                    }
                )
        lines.append(line)
    return lines


def _chain(checkpoint: ExperimentJob, collection: Collection) -> list[ExperimentJob]:
    """The checkpoint with its ancestors, oldest first."""
    chain = [checkpoint]
    while True:
        parent = next(
            (
                collection.by_object[name]
                for role, name in chain[0].parents
                if role in _FROM and name in collection.by_object
            ),
            None,
        )
        if parent is None or parent.type not in _MODELS:
            return chain
        chain.insert(0, parent)


def _policy(metrics: ExperimentJob, collection: Collection) -> ExperimentJob | None:
    """The checkpoint whose episodes were measured."""
    for _, name in metrics.parents:
        rollout = collection.by_object.get(name)
        if rollout is None:
            continue
        for role, parent in rollout.parents:
            if role == "policy" and parent in collection.by_object:
                return collection.by_object[parent]
    return None
