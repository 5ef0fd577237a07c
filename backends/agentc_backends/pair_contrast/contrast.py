"""Pairs trajectories of the same task by their rewards (ETO, arXiv 2403.02502, section 3.2, and
`construct_preference.py` for what the paper leaves open).

Pure: rows in, pairs and counts out. Tasks are matched by `task_id`, never by a name's prefix.
"""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias

from agentc_backends.pair_contrast.read import read_trajectories
from agentc_backends.pair_contrast.rules import Counts, PairError, PairRules, Trajectory

Row: TypeAlias = Mapping[str, Any]


def build_pairs(
    expert: Sequence[Sequence[Row]], explored: Sequence[Sequence[Row]], rules: PairRules
) -> tuple[list[dict[str, Any]], Counts]:
    """Rows of pairs.jsonl, ordered by explored trajectory (input, row), and what was counted.

    `expert` and `explored` hold the rows of each input. Raises PairError.
    """
    counts = Counts()
    experts: dict[str, list[Trajectory]] = defaultdict(list)
    if rules.with_expert or expert:
        for trajectory in read_trajectories(expert, rules, counts, "expert"):
            experts[trajectory.task_id].append(trajectory)
    others = read_trajectories(explored, rules, counts, "explored")
    pairs: list[dict[str, Any]] = []
    if rules.with_expert:
        pairs += _against_expert(experts, others, rules, counts)
    if rules.with_self:
        pairs += _among_themselves(experts, others, rules, counts)
    return _at_most(pairs, rules, counts), counts


def _against_expert(
    experts: Mapping[str, Sequence[Trajectory]],
    explored: Sequence[Trajectory],
    rules: PairRules,
    counts: Counts,
) -> Iterator[dict[str, Any]]:
    for other in explored:
        candidates = experts.get(other.task_id)
        if not candidates:
            counts.skipped["no_expert"] += 1
            continue
        # The expert of the same prompt, where there is one: its text suits both sides.
        own = [c for c in candidates if c.prompt_seed == other.prompt_seed]
        gold = own[0] if own else candidates[0]
        outcome = _outcome(other, gold, rules, counts, "")
        if outcome is None:
            continue
        if outcome == "win" and rules.directions == "lose_only":
            counts.skipped["win_by_direction"] += 1
            continue
        winner, loser = (gold, other) if outcome == "lose" else (other, gold)
        rejected = loser.continuation
        if outcome == "lose":
            rejected = _cut(loser, gold.turns, rules, counts)
        task = {"winner": winner, "expert": gold, "explorer": other}[rules.prompt_from]
        pair_id = f"{other.task_id}#e{_tag(gold)}-r{_tag(other)}"
        pair = _pair(pair_id, outcome, _prompt(gold, task), winner, loser, rejected, counts)
        if pair is not None:
            yield pair


def _among_themselves(
    experts: Mapping[str, Sequence[Trajectory]],
    explored: Sequence[Trajectory],
    rules: PairRules,
    counts: Counts,
) -> Iterator[dict[str, Any]]:
    by_task: dict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in explored:
        by_task[trajectory.task_id].append(trajectory)
    for task_id, group in by_task.items():
        for first, second in combinations(group, 2):
            if first.task_message != second.task_message:
                counts.skipped["self_other_prompt"] += 1
                continue
            outcome = _outcome(first, second, rules, counts, "self_")
            if outcome is None:
                continue
            winner, loser = (first, second) if outcome == "win" else (second, first)
            rejected = _cut(loser, winner.turns, rules, counts)
            gold = experts.get(task_id)
            prompt = _prompt(gold[0] if gold else winner, winner)
            pair_id = f"{task_id}#r{_tag(winner)}-r{_tag(loser)}"
            pair = _pair(pair_id, "self", prompt, winner, loser, rejected, counts)
            if pair is not None:
                yield pair


def _outcome(
    one: Trajectory, other: Trajectory, rules: PairRules, counts: Counts, prefix: str
) -> str | None:
    """ "win" or "lose" of `one` against `other`, or None for a tie; counted."""
    assert one.reward is not None
    assert other.reward is not None
    difference = one.reward - other.reward
    if abs(difference) <= rules.margin:
        counts.compared[prefix + "tie"] += 1
        if rules.on_tie == "error":
            raise PairError(
                f"{one.id} ({one.reward:g}) and {other.id} ({other.reward:g}) differ by no more "
                f"than the margin {rules.margin:g}; set on_tie to drop to leave such pairs out"
            )
        return None
    outcome = "win" if difference > 0 else "lose"
    counts.compared[prefix + ("pair" if prefix else outcome)] += 1
    return outcome


def _cut(
    loser: Trajectory, turns: int, rules: PairRules, counts: Counts
) -> tuple[Mapping[str, str], ...]:
    """The rejected side, at most `max_extra_rounds` replies longer than the other's `turns`."""
    if rules.max_extra_rounds is None or loser.turns <= turns + rules.max_extra_rounds:
        return loser.continuation
    counts.rejected_cut += 1
    return loser.continuation[: 2 * (turns + rules.max_extra_rounds) - 1]


def _prompt(lead: Trajectory, task: Trajectory) -> list[dict[str, str]]:
    """The messages before the task as the expert's data have them (so that DPO continues what SFT
    began, with or without in-context examples), then the task message of `task`."""
    # Where instruction and task share one message, that message cannot be moved alone.
    if _in_one(lead) != _in_one(task):
        raise PairError(
            f"{lead.id} and {task.id} open in different ways: the instruction is part of the task "
            "message in one of them only; use one prompt for both, or give it an acknowledgement"
        )
    return [dict(m) for m in (*lead.prompt[:-1], task.task_message)]


def _in_one(trajectory: Trajectory) -> bool:
    """Whether nothing but a system message stands before the task message."""
    return all(message["role"] == "system" for message in trajectory.prompt[:-1])


def _pair(
    pair_id: str,
    outcome: str,
    prompt: list[dict[str, str]],
    winner: Trajectory,
    loser: Trajectory,
    rejected: Sequence[Mapping[str, str]],
    counts: Counts,
) -> dict[str, Any] | None:
    if list(winner.continuation) == list(rejected):
        counts.skipped["same_text"] += 1
        return None
    if not any(m["content"] for m in rejected if m["role"] == "assistant"):
        counts.skipped["rejected_empty"] += 1
        return None
    return {
        "id": pair_id,
        "task_id": winner.task_id,
        "prompt": prompt,
        "chosen": [dict(m) for m in winner.continuation],
        "rejected": [dict(m) for m in rejected],
        "chosen_reward": winner.reward,
        "rejected_reward": loser.reward,
        "outcome": outcome,
        "chosen_id": winner.id,
        "rejected_id": loser.id,
    }


def _tag(trajectory: Trajectory) -> str:
    """Number of the input and of the attempt: unique within a role, and the same in every run."""
    return f"{trajectory.place[0]}.{trajectory.attempt}"


def _at_most(pairs: list[dict[str, Any]], rules: PairRules, counts: Counts) -> list[dict[str, Any]]:
    if rules.max_per_task is None:
        return pairs
    by_task: dict[str, list[int]] = defaultdict(list)
    for number, pair in enumerate(pairs):
        by_task[pair["task_id"]].append(number)
    kept: set[int] = set()
    for task_id, numbers in by_task.items():
        if len(numbers) > rules.max_per_task:
            digest = hashlib.sha256(f"pairs/1/{rules.seed}/{task_id}".encode()).digest()
            chosen = random.Random(digest).sample(numbers, rules.max_per_task)
            counts.skipped["over_max_per_task"] += len(numbers) - len(chosen)
            numbers = chosen
        kept.update(numbers)
    return [pair for number, pair in enumerate(pairs) if number in kept]
