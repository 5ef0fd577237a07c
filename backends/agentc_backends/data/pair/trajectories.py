"""Trajectories as pair building reads them: its settings, the usable ones of its inputs, and the
counts that say what became of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentc.kinds.interaction import PairSettings


class PairError(ValueError):
    """The trajectories cannot be paired as the stage asks; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRules(PairSettings):
    """What makes a pair."""

    def is_tie(self, difference: float) -> bool:
        """Whether two rewards so far apart make no pair. Floats are compared as they are, as in
        the released code of SWEET-RL: 0.8 - 0.7 is at least 0.1, and 0.7 - 0.6 is not."""
        if self.margin_is == "at_least":
            return abs(difference) < self.margin
        return abs(difference) <= self.margin

    def may_be_chosen(self, reward: float) -> bool:
        """Whether a trajectory with this reward, which may be a sum of floats, can be chosen."""
        return self.chosen_at_least is None or reward >= self.chosen_at_least - 1e-9

    @property
    def with_expert(self) -> bool:
        return self.sources != "self"

    @property
    def with_self(self) -> bool:
        return self.sources != "expert"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A row of trajectories.jsonl, cut into prompt and continuation.

    `continuation` starts and ends with the agent. `forgotten` of its turns were no longer before
    the policy when it ended (`on_overflow: drop_oldest`). `place` is (number of the input, number
    of the row): the order in which things are paired. `given` of its turns are those of the
    trajectory `origin`, from which it went on; None for one that began at the start.
    """

    id: str
    task_id: str
    attempt: int
    prompt_seed: int | None
    reward: float | None
    prompt: tuple[Mapping[str, str], ...]
    continuation: tuple[Mapping[str, str], ...]
    place: tuple[int, int]
    forgotten: int = 0
    given: int | None = None
    origin: str = ""

    @property
    def turns(self) -> int:
        return (len(self.continuation) + 1) // 2

    def begins_as(self, other: Trajectory, turns: int) -> bool:
        """Whether the first `turns` replies of both are the same."""
        return self.beginning(turns) == other.beginning(turns)

    def beginning(self, turns: int) -> tuple[str, ...]:
        """The first `turns` replies, as later turns saw them."""
        return tuple(m["content"] for m in self.continuation[: 2 * turns : 2])

    @property
    def task_message(self) -> Mapping[str, str]:
        return self.prompt[-1]


@dataclass(slots=True)
class PairCounts:
    """What happened: `compared` by outcome (win, tie, lose, and their self-play counterparts),
    `skipped` by reason."""

    compared: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    rejected_cut: int = 0
    # Ids of pairs with a side that was acted without all of its turns; how many were kept.
    shortened: set[str] = field(default_factory=set)
    forgotten: int = 0

    def facts(self, pairs: int) -> dict[str, Any]:
        """As they stand in the manifest; the three outcomes and `null` are always present."""
        compared = {name: self.compared[name] for name in ("win", "tie", "lose")}
        compared |= {name: n for name, n in sorted(self.compared.items()) if n}
        return {
            **compared,
            "null": self.skipped["null_reward"],
            "skipped": {name: n for name, n in sorted(self.skipped.items()) if n},
            "rejected_cut": self.rejected_cut,
            "forgotten": self.forgotten,
            "pairs": pairs,
        }


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
            f"trajectory {trajectory.id} has no reward; set on_null to drop or zero to continue"
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
