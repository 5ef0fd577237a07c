"""What several attempts at a task are worth together: expectations over all choices of k of them.

Drawn without replacement from the n attempts that were made, so that each is an unbiased estimate
for k attempts made anew (for pass@k: Chen et al. 2021, section 2.1); with k = n it is what was
seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import comb
from typing import Any, TypeAlias

Document: TypeAlias = Mapping[str, Any]
"""A metrics.json."""


def best_of(rewards: Sequence[float], k: int) -> float | None:
    """The expected largest of k rewards; None where there are fewer.

    Of the subsets of k, C(i, k - 1) have the reward with i others below it as their largest.
    """
    if len(rewards) < k:
        return None
    ways = comb(len(rewards), k)
    ordered = sorted(rewards)
    return sum(comb(i, k - 1) / ways * reward for i, reward in enumerate(ordered))


def pass_at(successes: Sequence[bool], k: int) -> float | None:
    """The chance that one of k attempts at least is a success: 1 - C(n - c, k) / C(n, k)."""
    n = len(successes)
    if n < k:
        return None
    return 1 - comb(n - sum(successes), k) / comb(n, k)


def best_of_rows(name: str, metrics: Document) -> Iterator[tuple[str, Document]]:
    """An evaluation once for each of its `best_of`: the scores of a task are those of the best of
    so many attempts, as papers print a row Best-of-N."""
    for k in metrics.get("best_of", ()):
        tasks = {
            task: {
                "reward": scores[f"best_of({k})"],
                "success": scores[f"pass_at({k})"],
                "attempts": scores["attempts"],
            }
            for task, scores in metrics["tasks"].items()
        }
        kept = {n: value for n, value in metrics.items() if n not in ("asked", "best_of")}
        yield f"{name}, best of {k}", {**kept, "tasks": tasks, "n_tasks": _scored(tasks)}


def _scored(tasks: Mapping[str, Mapping[str, Any]]) -> int:
    return sum(task["reward"] is not None for task in tasks.values())
