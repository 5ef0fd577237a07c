"""Where trees begin: at the start of a task, or behind the first turns of another trajectory, which
are played again before anything is searched (docs/design/prefixes.md).

`grow.py` grows the tree from there; the turns before the root are no nodes of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentc_backends.agents.common.prefixes import Prefix
from agentc_backends.agents.common.prompt import EpisodePrompt, Message, observation_message
from agentc_backends.agents.common.seeds import prefix_tree_seed, tree_seed


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRoot:
    """A tree that is to be grown; behind a `prefix` it has a number within its task. So many turns
    of the prefix count towards the depth of the search as `depth` says."""

    id: str
    task_id: str
    seed: int
    tie_seed: int
    prompt_seed: int
    prefix: Prefix | None = None
    depth: int = 0

    def origin(self) -> dict[str, Any]:
        """What its row says of its prefix; nothing where it has none."""
        return {} if self.prefix is None else {"origin": self.prefix.origin()}


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTurn:
    """A turn before the root: the reply of somebody else, and what the environment answers to it
    now. `action` is empty where the reply holds none; `reward` is the score of the episode so
    far."""

    reply: str
    action: str
    observation: str
    reward: float
    cut: bool = False

    def messages(self, prompt: EpisodePrompt) -> list[Message]:
        return [
            {"role": "assistant", "content": self.reply},
            observation_message(prompt.observation_prefix, self.observation, prompt.answered_by),
        ]

    def row(self) -> dict[str, Any]:
        """The turn in a line of trees.jsonl (docs/design/contracts.md, section 4)."""
        row = {"reply": self.reply, "action": self.action, "observation": self.observation}
        return {**row, "reward": self.reward, **({"cut": True} if self.cut else {})}


def roots_at(tasks: Sequence[str], seed: int, tie_seed: int, prompt_seed: int) -> list[TreeRoot]:
    """One tree for each task, from its start."""
    return [
        TreeRoot(
            id=task_id,
            task_id=task_id,
            seed=tree_seed(seed, task_id),
            tie_seed=tree_seed(tie_seed, task_id),
            prompt_seed=prompt_seed,
        )
        for task_id in tasks
    ]


def roots_behind(
    prefixes: Sequence[Prefix], seed: int, tie_seed: int, *, counted: bool
) -> list[TreeRoot]:
    """One tree for each prefix, under the prompt that its source had. They are numbered within
    their task; what a tree draws rests on its prefix instead."""
    numbers: Counter[str] = Counter()
    found = []
    for prefix in prefixes:
        source = prefix.source
        found.append(
            TreeRoot(
                id=f"{source.task_id}#{numbers[source.task_id]}",
                task_id=source.task_id,
                seed=prefix_tree_seed(seed, source.input, source.id, prefix.length),
                tie_seed=prefix_tree_seed(tie_seed, source.input, source.id, prefix.length),
                prompt_seed=source.prompt_seed,
                prefix=prefix,
                depth=prefix.length if counted else 0,
            )
        )
        numbers[source.task_id] += 1
    return found
