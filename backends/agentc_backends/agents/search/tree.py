"""The tree of a search: where it begins, selection by UCT, backup of rewards, and what is stored of
it and of its cost.

The search has no rollout policy and no value model: each descent expands every new level until it
meets a dead end, and only terminal nodes are backed up (Agent-R, `mcts_raw.py`).
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from agentc_backends.agents.common.prefixes import Prefix
from agentc_backends.agents.common.prompts import EpisodePrompt, Message, observation_message
from agentc_backends.agents.common.seeds import prefix_tree_seed, tree_seed

End: TypeAlias = Literal["done", "depth", "negative", "overflow", "dead_end"]


@dataclass(slots=True, eq=False, kw_only=True)
class TreeNode:
    """A reply of the policy and what the environment answered; the root has neither.

    `reward` is the score of the episode so far, `value` a sum of rewards, `visits` the number of
    terminal leaves at or below. `terminal`: nothing is left to be searched here, for the reason in
    `end`; an inner node becomes a `dead_end` when all its children are terminal.
    """

    id: int
    parent: TreeNode | None
    depth: int
    reply: str = ""
    action: str = ""
    observation: str = ""
    reward: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cut: bool = False
    end: End | None = None
    terminal: bool = False
    visits: int = 0
    value: float = 0.0
    children: list[TreeNode] = field(default_factory=list)
    forgotten: int = 0
    """So many observations, each with the reply after it, no longer fit into the prompt."""

    def lineage(self) -> list[TreeNode]:
        """The path from the root, this node included and the root left out."""
        found: list[TreeNode] = []
        node = self
        while node.parent is not None:
            found.append(node)
            node = node.parent
        return found[::-1]

    def path(self) -> tuple[str, ...]:
        """The actions that lead here; replies without an action changed nothing."""
        return tuple(node.action for node in self.lineage() if node.action)

    def row(self) -> dict[str, Any]:
        """The node in a line of trees.jsonl (docs/design/contracts.md, section 4)."""
        row: dict[str, Any] = {
            "id": self.id,
            "parent": None if self.parent is None else self.parent.id,
            "depth": self.depth,
            "reply": self.reply,
            "action": self.action,
            "observation": self.observation,
            "reward": self.reward,
            "visits": self.visits,
            "value": self.value,
            "terminal": self.terminal,
            "end": self.end,
            "tokens": [self.prompt_tokens, self.completion_tokens],
        }
        if self.cut:
            row["cut"] = True
        return row


def uct(value: float, visits: int, parent_visits: int, c_uct: float) -> float:
    """Mean value plus the bonus for exploring, c * sqrt(ln(parent's visits) / visits).

    A node without visits scores 0 here, as the released code stores it; `Tree.best_child` prefers
    it to every other.
    """
    if visits == 0:
        return 0.0
    return value / visits + c_uct * math.sqrt(math.log(parent_visits) / visits)


class Tree:
    """Nodes in the order in which they were kept. `ties` chooses between equally good nodes; like
    the released code it draws for a single candidate too, so that equal generators agree."""

    def __init__(self, c_uct: float, ties: random.Random) -> None:
        self._c_uct = c_uct
        self._ties = ties
        self.root = TreeNode(id=0, parent=None, depth=0)
        self.nodes = [self.root]
        self.descents = 0

    def __iter__(self) -> Iterator[TreeNode]:
        return iter(self.nodes)

    def new_child(self, parent: TreeNode, **fields: Any) -> TreeNode:
        """A child that is not yet in the tree; `attach` takes all children of a node at once."""
        return TreeNode(id=-1, parent=parent, depth=parent.depth + 1, **fields)

    def attach(self, parent: TreeNode, children: Sequence[TreeNode]) -> None:
        """Give a node its children, and back up the rewards of the terminal ones."""
        for child in children:
            child.id = len(self.nodes)
            self.nodes.append(child)
        parent.children = list(children)
        for child in children:
            if child.terminal:
                self._back_up(child)

    def close(self, node: TreeNode, end: End) -> None:
        """Make a node without children a leaf after all, and back its reward up."""
        node.terminal, node.end = True, end
        self._back_up(node)

    def select(self, node: TreeNode) -> TreeNode | None:
        """Walk down the best children to a node that has none; None at a dead end."""
        found: TreeNode | None = node
        while found is not None and found.children:
            found = self.best_child(found)
        return found

    def best_child(self, node: TreeNode) -> TreeNode | None:
        """The child to go on with: not terminal, unvisited before visited, then by UCT."""
        best: list[TreeNode] = []
        best_score = -math.inf
        for child in node.children:
            if child.terminal:
                continue
            score = math.inf
            if child.visits:
                score = uct(child.value, child.visits, node.visits, self._c_uct)
            if score > best_score:
                best, best_score = [child], score
            elif score == best_score:
                best.append(child)
        return self._ties.choice(best) if best else None

    def _back_up(self, leaf: TreeNode) -> None:
        node: TreeNode | None = leaf
        while node is not None:
            node.visits += 1
            node.value += leaf.reward
            if node.children and all(child.terminal for child in node.children):
                node.terminal, node.end = True, "dead_end"
            node = node.parent


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
class OpeningTurn:
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


def task_roots(tasks: Sequence[str], seed: int, tie_seed: int, prompt_seed: int) -> list[TreeRoot]:
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


def prefix_roots(
    prefixes: Sequence[Prefix], seed: int, tie_seed: int, *, counted: bool
) -> list[TreeRoot]:
    """One tree for each prefix, under the prompt that its source had. They are numbered within
    their task; what a tree draws depends on its prefix instead."""
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


@dataclass(slots=True)
class RequestBudget:
    """Requests to both servers, by what they were for. `environment_calls` counts every request
    about a session, closing included; `steps` made new nodes, `replayed_steps` brought a session
    to a node once more, `forks` copied a state (restored snapshots included), `verified` nodes were
    replayed and showed the same."""

    model_calls: int = 0
    samples: int = 0
    environment_calls: int = 0
    steps: int = 0
    replayed_steps: int = 0
    forks: int = 0
    verified: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def row(self) -> dict[str, int]:
        return asdict(self)
