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

from agentc_backends.data.pair.trajectories import (
    PairCounts,
    PairError,
    PairRules,
    Trajectory,
    read_trajectories,
)

Row: TypeAlias = Mapping[str, Any]
Messages: TypeAlias = Sequence[Mapping[str, str]]


def build_pairs(
    expert: Sequence[Sequence[Row]], explored: Sequence[Sequence[Row]], rules: PairRules
) -> tuple[list[dict[str, Any]], PairCounts]:
    """Rows of pairs.jsonl, ordered by explored trajectory (input, row), and what was counted.

    `expert` and `explored` hold the rows of each input. Raises PairError.
    """
    counts = PairCounts()
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
    kept = _at_most(pairs, rules, counts)
    counts.forgotten = sum(pair["id"] in counts.shortened for pair in kept)
    return kept, counts


def _against_expert(
    experts: Mapping[str, Sequence[Trajectory]],
    explored: Sequence[Trajectory],
    rules: PairRules,
    counts: PairCounts,
) -> Iterator[dict[str, Any]]:
    for other in explored:
        candidates = experts.get(other.task_id)
        if not candidates:
            counts.skipped["no_expert"] += 1
            continue
        # The expert of the same prompt, where there is one: its text suits both sides.
        own = [c for c in candidates if c.prompt_seed == other.prompt_seed]
        shared = other.given if rules.contrast != "trajectory" else None
        gold = _gold(own or candidates, other, shared)
        if gold is None:
            counts.skipped["other_prefix"] += 1
            continue
        outcome = _outcome(other, gold, rules, counts, "")
        if outcome is None:
            continue
        if outcome == "win" and rules.directions == "lose_only":
            counts.skipped["win_by_direction"] += 1
            continue
        winner, loser = (gold, other) if outcome == "lose" else (other, gold)
        if not _may_be_chosen(winner, rules, counts):
            continue
        longest = gold.turns if outcome == "lose" else None
        sides = _sides(winner, loser, longest, shared, rules, counts)
        task = {"winner": winner, "expert": gold, "explorer": other}[rules.prompt_from]
        prompt = [*_prompt(gold, task), *_shared_messages(task, shared)]
        pair_id = f"{other.task_id}#e{_tag(gold)}-r{_tag(other)}"
        pair = _pair(pair_id, outcome, prompt, winner, loser, sides, counts)
        if pair is not None:
            yield {**pair, "shared_turns": shared} if shared is not None else pair


def _among_themselves(
    experts: Mapping[str, Sequence[Trajectory]],
    explored: Sequence[Trajectory],
    rules: PairRules,
    counts: PairCounts,
) -> Iterator[dict[str, Any]]:
    by_task: dict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in explored:
        by_task[trajectory.task_id].append(trajectory)
    for task_id, group in by_task.items():
        best = _best(group, rules) if rules.chosen == "best" else None
        for first, second in combinations(group, 2):
            if first.task_message != second.task_message:
                counts.skipped["self_other_prompt"] += 1
                continue
            shared = first.given if rules.contrast != "trajectory" else None
            if rules.contrast != "trajectory" and (
                second.given != shared or not first.begins_as(second, shared or 0)
            ):
                counts.skipped["self_other_prefix"] += 1
                continue
            outcome = _outcome(first, second, rules, counts, "self_")
            if outcome is None:
                continue
            winner, loser = (first, second) if outcome == "win" else (second, first)
            if not _may_be_chosen(winner, rules, counts):
                continue
            if best is not None and winner.place not in best:
                counts.skipped["self_not_best"] += 1
                continue
            sides = _sides(winner, loser, winner.turns, shared, rules, counts)
            gold = experts.get(task_id)
            prompt = _prompt(gold[0] if gold else winner, winner)
            prompt += _shared_messages(winner, shared)
            pair_id = f"{task_id}#r{_tag(winner)}-r{_tag(loser)}"
            pair = _pair(pair_id, "self", prompt, winner, loser, sides, counts)
            if pair is not None:
                yield {**pair, "shared_turns": shared} if shared is not None else pair


def _best(group: Sequence[Trajectory], rules: PairRules) -> set[tuple[int, int]]:
    """The places of the trajectories of a task that none with the same beginning surpasses; of
    equal ones the first."""
    best: dict[object, Trajectory] = {}
    for each in group:
        beginning: object = tuple(sorted(each.task_message.items()))
        if rules.contrast != "trajectory":
            beginning = beginning, each.given, each.beginning(each.given or 0)
        found = best.setdefault(beginning, each)
        assert each.reward is not None
        assert found.reward is not None
        if each.reward > found.reward:
            best[beginning] = each
    return {each.place for each in best.values()}


def _may_be_chosen(winner: Trajectory, rules: PairRules, counts: PairCounts) -> bool:
    assert winner.reward is not None
    if rules.may_be_chosen(winner.reward):
        return True
    counts.skipped["chosen_below"] += 1
    return False


def _gold(
    candidates: Sequence[Trajectory], other: Trajectory, shared: int | None
) -> Trajectory | None:
    """The expert's trajectory that another is held against: where that one went on from a prefix,
    the one that it was cut from, or one that begins alike."""
    if shared is None:
        return candidates[0]
    alike = [each for each in candidates if each.begins_as(other, shared)]
    return next((each for each in alike if each.id == other.origin), alike[0] if alike else None)


def _sides(
    winner: Trajectory,
    loser: Trajectory,
    longest: int | None,
    shared: int | None,
    rules: PairRules,
    counts: PairCounts,
) -> tuple[Messages, Messages]:
    """What is chosen and what is rejected, behind the `shared` turns; the rejected side is cut
    where the other has `longest` turns."""
    if shared is not None and rules.contrast == "step":
        step = slice(2 * shared, 2 * shared + 1)
        return winner.continuation[step], loser.continuation[step]
    rejected = loser.continuation
    if longest is not None:
        rejected = _cut(loser, longest, rules, counts)
    first = 2 * (shared or 0)
    return winner.continuation[first:], rejected[first:]


def _shared_messages(lead: Trajectory, shared: int | None) -> list[dict[str, str]]:
    """The turns that both sides share, as messages of the prompt."""
    return [
        {"role": m["role"], "content": m["content"]} for m in lead.continuation[: 2 * (shared or 0)]
    ]


def _outcome(
    one: Trajectory, other: Trajectory, rules: PairRules, counts: PairCounts, prefix: str
) -> str | None:
    """ "win" or "lose" of `one` against `other`, or None for a tie; counted."""
    assert one.reward is not None
    assert other.reward is not None
    difference = one.reward - other.reward
    if rules.is_tie(difference):
        counts.compared[prefix + "tie"] += 1
        if rules.on_tie == "error":
            raise PairError(
                f"{one.id} ({one.reward:g}) and {other.id} ({other.reward:g}) differ by "
                f"{'less' if rules.margin_is == 'at_least' else 'no more'} than the margin "
                f"{rules.margin:g}; set on_tie to drop to leave such pairs out"
            )
        return None
    outcome = "win" if difference > 0 else "lose"
    counts.compared[prefix + ("pair" if prefix else outcome)] += 1
    return outcome


def _cut(
    loser: Trajectory, turns: int, rules: PairRules, counts: PairCounts
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
    if _opens_with_task(lead) != _opens_with_task(task):
        raise PairError(
            f"{lead.id} and {task.id} open in different ways: the instruction is part of the task "
            "message in one of them only; use one prompt for both, or give it an acknowledgement"
        )
    return [dict(m) for m in (*lead.prompt[:-1], task.task_message)]


def _opens_with_task(trajectory: Trajectory) -> bool:
    """Whether nothing but a system message stands before the task message."""
    return all(message["role"] == "system" for message in trajectory.prompt[:-1])


def _pair(
    pair_id: str,
    outcome: str,
    prompt: list[dict[str, str]],
    winner: Trajectory,
    loser: Trajectory,
    sides: tuple[Messages, Messages],
    counts: PairCounts,
) -> dict[str, Any] | None:
    chosen, rejected = sides
    if not chosen or not rejected:
        counts.skipped["without_step"] += 1
        return None
    if list(chosen) == list(rejected):
        counts.skipped["same_text"] += 1
        return None
    for name, side in (("chosen", chosen), ("rejected", rejected)):
        if not any(m["content"] for m in side if m["role"] == "assistant"):
            counts.skipped[f"{name}_empty"] += 1
            return None
    if winner.forgotten or loser.forgotten:
        counts.shortened.add(pair_id)
    return {
        "id": pair_id,
        "task_id": winner.task_id,
        "prompt": prompt,
        "chosen": [dict(m) for m in chosen],
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


def _at_most(
    pairs: list[dict[str, Any]], rules: PairRules, counts: PairCounts
) -> list[dict[str, Any]]:
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
