"""Which episodes a stage consists of, and the rules they share: read from the job's settings and
from what the environment says of itself (`/meta`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from agentc.program.job import JobConfig
from agentc_backends.agents.common.episode import Attempt, EpisodeRules
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.prefixes import Prefix
from agentc_backends.agents.common.prompt import read_prompt
from agentc_backends.agents.common.seeds import episode_seed, prefix_seed

_REWARD_KINDS = ("terminal", "latest", "sum", "max")


def read_rules(config: JobConfig, meta: Mapping[str, Any]) -> EpisodeRules:
    """What holds for every episode. Raises FatalError."""
    reward_kind = meta.get("reward_kind", "terminal")
    if reward_kind not in _REWARD_KINDS:
        raise FatalError(
            f"the environment's reward_kind is {reward_kind!r}; known are "
            + ", ".join(_REWARD_KINDS)
        )
    low, high = config["reward_range"]
    return EpisodeRules(
        prompt=read_prompt(config["prompt"]),
        split=config["split"],
        reward_range=(low, high),
        reward_kind=reward_kind,
        success_at=config["success_at"],
    )


def tasks_of(meta: Mapping[str, Any], split: str, limit: int | None) -> Sequence[str]:
    """The first `limit` tasks of a split, in the environment's order. Raises FatalError when the
    environment has no such split, no task in it, or a task twice."""
    splits = meta["splits"]
    if split not in splits:
        raise FatalError(f"the environment has no split {split!r}; it has {', '.join(splits)}")
    tasks: Sequence[str] = splits[split][:limit]
    if not tasks:
        raise FatalError(f"the split {split!r} holds no task with these environment settings")
    if len(set(tasks)) < len(tasks):
        twice = next(task for task in tasks if tasks.count(task) > 1)
        raise FatalError(f"the split {split!r} names task {twice!r} twice")
    return tasks


def attempts_at(
    tasks: Sequence[str], attempts: int, *, seed: int, prompt_seed: int, prompt_per_attempt: bool
) -> list[Attempt]:
    """Every episode, ordered by (position of the task, attempt)."""
    return [
        Attempt(
            position=position,
            task_id=task_id,
            number=number,
            seed=episode_seed(seed, task_id, number),
            prompt_seed=prompt_seed + (number if prompt_per_attempt else 0),
        )
        for position, task_id in enumerate(tasks)
        for number in range(attempts)
    ]


def attempts_behind(
    prefixes: Sequence[Prefix], tasks: Sequence[str], attempts: int, *, seed: int
) -> list[Attempt]:
    """So many episodes for each prefix, under the prompt that its source had. They are numbered
    within their task; what an episode draws rests on its prefix instead."""
    places = {task_id: place for place, task_id in enumerate(tasks)}
    numbers: Counter[str] = Counter()
    found: list[Attempt] = []
    for prefix in prefixes:
        source = prefix.source
        for attempt in range(attempts):
            found.append(
                Attempt(
                    position=places[source.task_id],
                    task_id=source.task_id,
                    number=numbers[source.task_id],
                    seed=prefix_seed(seed, source.input, source.id, prefix.length, attempt),
                    prompt_seed=source.prompt_seed,
                    prefix=prefix,
                )
            )
            numbers[source.task_id] += 1
    return found
