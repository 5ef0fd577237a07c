"""Reads trajectories for pairing and leaves out, with a count, what can never be in a pair."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentc_backends.data.pair.rules import PairCounts, PairError, PairRules, Trajectory


def read_trajectories(
    inputs: Sequence[Sequence[Mapping[str, Any]]], rules: PairRules, counts: PairCounts, side: str
) -> list[Trajectory]:
    """The usable trajectories of one role over all its inputs, in their order.

    Left out: infrastructure errors, rows without an agent turn (theirs: IndexError), rows whose
    replies are all empty, rows without a reward (by `on_null`), and a row that is equal in every
    field to an earlier one (the same artifact given twice). Raises PairError.
    """
    kept: list[Trajectory] = []
    seen: set[str] = set()
    for number, rows in enumerate(inputs):
        for position, row in enumerate(_episodes(rows)):
            identity = json.dumps(row, sort_keys=True)
            if identity in seen:
                counts.skipped[f"{side}_duplicate"] += 1
                continue
            seen.add(identity)
            trajectory = _usable(row, (number, position), rules, counts, side)
            if trajectory is not None:
                kept.append(trajectory)
    return kept


def _episodes(rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Conversations of a data set as finished episodes: those of a task are its attempts, and no
    seed of a prompt is known of them."""
    attempts: Counter[str] = Counter()
    for row in rows:
        if "end" in row:
            yield row
            continue
        task = row["task_id"]
        yield {**row, "end": "given", "attempt": attempts[task], "prompt_seed": None}
        attempts[task] += 1


def _usable(
    row: Mapping[str, Any], place: tuple[int, int], rules: PairRules, counts: PairCounts, side: str
) -> Trajectory | None:
    if row["end"] == "error":
        counts.skipped[f"{side}_infrastructure_error"] += 1
        return None
    trajectory = _cut(row, place)
    if not trajectory.continuation:
        counts.skipped[f"{side}_without_turns"] += 1
        return None
    if not any(m["content"] for m in trajectory.continuation if m["role"] == "assistant"):
        counts.skipped[f"{side}_empty_replies"] += 1
        return None
    if trajectory.reward is not None:
        return trajectory
    if rules.on_null == "error":
        raise PairError(
            f"trajectory {trajectory.id} has no reward; set on_null to drop or zero to go on"
        )
    if rules.on_null == "drop":
        counts.skipped["null_reward" if side == "explored" else f"{side}_null_reward"] += 1
        return None
    return replace(trajectory, reward=0.0)


def _cut(row: Mapping[str, Any], place: tuple[int, int]) -> Trajectory:
    messages, length = row["messages"], row["prompt_length"]
    roles = [message["role"] for message in messages]
    if length < 1 or roles[length - 1] != "user":
        raise PairError(f"trajectory {row['id']}: the prompt does not end with a user message")
    continuation = messages[length:]
    if len(continuation) % 2 == 0:
        # What the environment said last; nobody answered it.
        continuation = continuation[:-1]
    expected = [True, False] * len(continuation)
    if [m["role"] == "assistant" for m in continuation] != expected[: len(continuation)]:
        raise PairError(f"trajectory {row['id']}: assistant and user messages do not alternate")
    return Trajectory(
        id=row["id"],
        task_id=row["task_id"],
        attempt=row["attempt"],
        prompt_seed=row["prompt_seed"],
        reward=row["reward"],
        prompt=tuple(messages[:length]),
        # Marks are for imitation; both sides of a pair are trained whole.
        continuation=tuple({n: v for n, v in m.items() if n != "loss"} for m in continuation),
        place=place,
        forgotten=row.get("forgotten", 0),
        given=row["origin"]["turns"] if "origin" in row else None,
        origin=row["origin"]["id"] if "origin" in row else "",
    )
