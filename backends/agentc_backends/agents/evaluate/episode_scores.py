"""Scores of episodes besides reward and success: the best of k attempts, action loops, and rewards
of steps by continuation.

The best of k is an expectation over all choices of k of the n attempts that were made, without
replacement, so that each is an unbiased estimate for k new attempts (for pass@k: Chen et al. 2021,
section 2.1); with k = n it is what was seen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean
from typing import Any, TypeAlias

from agentc.kinds.evaluation import Loops
from agentc_backends.agents.common.actions import parse_action, whole_reply
from agentc_backends.agents.common.prompts import ReplyFormat
from agentc_backends.agents.common.settings import ActionRules

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
    N attempts, as papers print a row Best-of-N."""
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


@dataclass(frozen=True, kw_only=True)
class LoopRules(ActionRules, Loops):
    """What a loop is; the others are the rollout's, for an action to be what the environment was
    given."""

    reply_format: ReplyFormat


def episode_actions(row: Mapping[str, Any], rules: LoopRules) -> list[str]:
    """The actions of an episode. A reply without one counts as an action: an agent that repeats
    the same nonsense is in a loop as well. The answer of a search has its
    `actions` at hand."""
    if "actions" in row:
        return list(row["actions"])
    found = []
    for message in row["messages"][row["prompt_length"] :]:
        if message["role"] != "assistant":
            continue
        reply = message["content"]
        action = parse_action(
            reply, rules.reply_format, span=rules.action_span, space=rules.action_space
        )
        if action is None:
            whole = rules.no_action == "whole_reply"
            action = whole_reply(reply) if whole else reply.strip()
        found.append(action)
    return found


def repeats(actions: Sequence[str], rules: LoopRules) -> Counter[int]:
    """How often a block was done again, by its number of actions; blocks that do not stand often
    enough in a row for a loop are not counted."""
    counted: Counter[int] = Counter()
    for length, times in _runs(actions, rules.longest):
        if times >= rules.times:
            counted[length] += times - 1
    return counted


def _runs(actions: Sequence[str], longest: int) -> Iterator[tuple[int, int]]:
    """(length of a block, times in a row) of every block that stands at least twice in a row."""
    for length in range(1, min(longest, len(actions) // 2) + 1):
        start = 0
        while start + 2 * length <= len(actions):
            block = actions[start : start + length]
            times = 1
            while actions[start + times * length : start + (times + 1) * length] == block:
                times += 1
            if times > 1 and not _is_run(block):
                yield length, times
            # A block may begin within the last one of a run, but not with an action of the others.
            start += (times - 1) * length + 1 if times > 1 else 1


def _is_run(block: Sequence[str]) -> bool:
    """Whether a block is itself a shorter one, several times."""
    length = len(block)
    return any(
        length % part == 0 and block == [*block[:part]] * (length // part)
        for part in range(1, length)
    )


Row: TypeAlias = Mapping[str, Any]


def step_rewards(rows: Iterable[Row]) -> dict[str, dict[str, dict[str, float]]]:
    """By trajectory (`<input>/<id>`) and number of its turns; empty where none was gone on from.
    `rows` have rewards."""
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if "origin" in row:
            origin = row["origin"]
            source = f"{origin['input']}/{origin['id']}"
            found[source][origin["turns"]].append(row["reward"])
    return {
        source: {
            str(turns): {"reward": fmean(rewards), "attempts": len(rewards)}
            for turns, rewards in sorted(steps.items())
        }
        for source, steps in found.items()
    }
