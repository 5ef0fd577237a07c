"""Trajectories of search trees (contracts.md, section 4), and pairs of a good and a bad one
(Agent-R, section 3.2, eq. 4, and `path_collection.py`).

A trajectory is the path from the root to a terminal node without children. A tree of 5,000 leaves
has millions of pairs, so they are numbered, and made when they are drawn; only `published`, which
shuffles all of them, lists numbers.
"""

from __future__ import annotations

import hashlib
import random
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any, TypeAlias, overload

from agentc_backends.agents.revise.rules import ReviseRules, RewardThresholds, SignalRules

Message: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReplyNode:
    """A reply and what the environment answered. `reward` is the score of the episode so far;
    `action` is empty where the reply held none; `tokens` counts those of the reply."""

    id: int
    parent: int | None
    reply: str
    action: str
    observation: str
    reward: float
    end: str | None
    cut: bool
    tokens: int


Steps: TypeAlias = tuple[ReplyNode, ...]
"""The nodes of a path, the root left out."""


@dataclass(frozen=True, slots=True)
class RevisionTree:
    """The tree of one task. `leaves` stand in the order of falling reward, those of equal reward as
    a depth-first walk meets them. `name` tells apart trees of one task from several inputs.
    `given` are the turns before the root of a tree that goes on from a trajectory, its `origin`:
    replies of somebody else, which all paths begin with."""

    name: str
    task_id: str
    prompt_seed: int
    opening: tuple[Message, ...]
    nodes: Mapping[int, ReplyNode]
    leaves: tuple[ReplyNode, ...]
    given: Steps = ()
    origin: Mapping[str, Any] | None = None

    def steps(self, node_id: int) -> Steps:
        """The path from the root to a node."""
        found: list[ReplyNode] = []
        node = self.nodes[node_id]
        while node.parent is not None:
            found.append(node)
            node = self.nodes[node.parent]
        return tuple(reversed(found))


def read_trees(inputs: Sequence[Iterable[Mapping[str, Any]]]) -> tuple[list[RevisionTree], int]:
    """The trees of all inputs, in order, and how many were left out because they broke off."""
    trees: list[RevisionTree] = []
    broken = 0
    for number, rows in enumerate(inputs):
        for row in rows:
            if row["end"] == "error":
                broken += 1
            else:
                trees.append(_tree(row, f"{row['id']}#{number}"))
    return trees, broken


def _tree(row: Mapping[str, Any], name: str) -> RevisionTree:
    nodes: dict[int, ReplyNode] = {}
    children: dict[int, list[int]] = defaultdict(list)
    terminal: set[int] = set()
    for entry in row["nodes"]:
        node = ReplyNode(
            id=entry["id"],
            parent=entry["parent"],
            reply=entry["reply"],
            action=entry["action"],
            observation=entry["observation"],
            reward=entry["reward"],
            end=entry["end"],
            cut=entry.get("cut", False),
            tokens=entry["tokens"][1],
        )
        nodes[node.id] = node
        if node.parent is not None:
            children[node.parent].append(node.id)
        if entry["terminal"]:
            terminal.add(node.id)
    leaves = [
        nodes[found]
        for found in _depth_first(children)
        if found in terminal and found not in children and nodes[found].parent is not None
    ]
    return RevisionTree(
        name=name,
        task_id=row["task_id"],
        prompt_seed=row["prompt_seed"],
        opening=tuple(row["messages"]),
        nodes=nodes,
        leaves=tuple(sorted(leaves, key=lambda leaf: -leaf.reward)),
        given=tuple(_prefix_node(turn, place) for place, turn in enumerate(row.get("prefix", ()))),
        origin=row.get("origin"),
    )


def _prefix_node(turn: Mapping[str, Any], place: int) -> ReplyNode:
    return ReplyNode(
        id=-1 - place,  # as no node is numbered
        parent=None,
        reply=turn["reply"],
        action=turn["action"],
        observation=turn["observation"],
        reward=turn["reward"],
        end=None,
        cut=turn.get("cut", False),
        tokens=0,
    )


def _depth_first(children: Mapping[int, Sequence[int]]) -> Iterable[int]:
    """All node ids, parents before children, siblings in the order in which they were kept."""
    waiting = [0]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children.get(node, ())))


@dataclass(frozen=True, slots=True)
class Pair:
    """Leaves of a tree, by node id, with the thought of the signal between them. `position` is the
    pair's place among those of its tree."""

    tree: RevisionTree
    position: int
    good: int
    bad: int
    thought: int

    @property
    def name(self) -> str:
        return f"{self.tree.name}/{self.good}-{self.bad}"


class PairSpace(Sequence[tuple[int, int]]):
    """All pairs (good, bad) of a tree by number, as places in `tree.leaves`.

    Leaves stand in the order of falling reward, so good ones come first and the bad ones of each
    are all from some place on: a pair is found by two searches, and none is stored.
    """

    def __init__(self, tree: RevisionTree, bars: RewardThresholds) -> None:
        rewards = [leaf.reward for leaf in tree.leaves]
        self._leaves = len(rewards)
        self._starts: list[int] = []
        for place, reward in enumerate(rewards):
            if not bars.is_good(reward):
                break
            if place and reward == rewards[place - 1]:
                self._starts.append(self._starts[-1])
            else:
                self._starts.append(_first_bad(rewards, reward, bars))
        self._ends = list(accumulate(self._leaves - start for start in self._starts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, number: int) -> tuple[int, int]: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[tuple[int, int]]: ...

    def __getitem__(self, number: int | slice) -> tuple[int, int] | Sequence[tuple[int, int]]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(number)
        good = bisect_right(self._ends, number)
        before = self._ends[good - 1] if good else 0
        return good, self._starts[good] + number - before


def _first_bad(rewards: Sequence[float], good: float, bars: RewardThresholds) -> int:
    """The first place whose reward is bad beside `good`; all later ones are lower."""
    low, high = 0, len(rewards)
    while low < high:
        middle = (low + high) // 2
        if bars.separates(good, rewards[middle]):
            high = middle
        else:
            low = middle + 1
    return low


class TreePairs(Sequence[Pair]):
    """The pairs of one tree that may be spliced: all of them, or `max_pairs_per_tree` drawn ones.
    `available` counts all."""

    def __init__(self, tree: RevisionTree, rules: ReviseRules) -> None:
        assert rules.bars is not None
        assert rules.signal is not None
        self._tree = tree
        self._signal = rules.signal
        self._seed = rules.seed
        self._space = PairSpace(tree, rules.bars)
        self._listed: list[tuple[int, int, int]] | None = None
        self._numbers: Sequence[int] = range(len(self._space))
        self.available = len(self._space)
        limit = rules.max_pairs_per_tree
        if rules.signal.draw == "published":
            ordered = _published(tree, rules.bars, rules.signal, rules.seed)
            self._listed = list(islice(ordered, limit))
            self._numbers = range(len(self._listed))
        elif limit is not None and limit < self.available:
            draws = permutation(self.available, generator("pairs", rules.seed, tree.name))
            self._numbers = sorted(islice(draws, limit))

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> Pair: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Pair]: ...

    def __getitem__(self, place: int | slice) -> Pair | Sequence[Pair]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        number = self._numbers[place]
        leaves = self._tree.leaves
        if self._listed is not None:
            good, bad, thought = self._listed[number]
            return Pair(self._tree, number, leaves[good].id, leaves[bad].id, thought)
        good, bad = self._space[number]
        pair = Pair(self._tree, number, leaves[good].id, leaves[bad].id, 0)
        drawn = _digest("thought", self._seed, pair.name) % len(self._signal.thoughts)
        return Pair(pair.tree, pair.position, pair.good, pair.bad, drawn)


def _published(
    tree: RevisionTree, bars: RewardThresholds, signal: SignalRules, seed: int
) -> Iterator[tuple[int, int, int]]:
    """(good, bad, thought) in the order of the released code: it shuffles all pairs that beta tells
    apart, then takes those whose good side passes alpha and draws a thought for each."""
    rewards = [leaf.reward for leaf in tree.leaves]
    leaves = len(rewards)
    numbers = array("Q")
    for good, reward in enumerate(rewards):
        first = _first_bad(rewards, reward, bars)
        numbers.extend(range(good * leaves + first, (good + 1) * leaves))
    source = random.Random(seed)
    source.shuffle(numbers)
    for number in numbers:
        good, bad = divmod(number, leaves)
        if bars.is_good(rewards[good]):
            yield good, bad, source.randint(0, len(signal.thoughts) - 1)


def draw_pairs(trees: Sequence[TreePairs], part: str, rules: ReviseRules) -> Iterator[Pair]:
    """The pairs of all trees: in order, or in random order where only some are wanted."""
    ends = list(accumulate(len(pairs) for pairs in trees))
    total = ends[-1] if ends else 0
    numbers: Iterator[int] = iter(range(total))
    if rules.max_revision is not None and rules.max_revision < total:
        numbers = permutation(total, generator(part, rules.seed, ""))
    for number in numbers:
        tree = bisect_right(ends, number)
        yield trees[tree][number - (ends[tree - 1] if tree else 0)]


def permutation(total: int, source: random.Random) -> Iterator[int]:
    """The numbers below `total` in random order; the first n cost as much as n (Fisher and Yates,
    storing only what was moved)."""
    moved: dict[int, int] = {}
    for place in range(total):
        other = source.randrange(place, total)
        yield moved.get(other, other)
        moved[other] = moved.pop(place, place)


def generator(purpose: str, seed: int, name: str) -> random.Random:
    """A generator for one purpose, so that no draw depends on the order of others."""
    return random.Random(_digest(purpose, seed, name))


def _digest(purpose: str, seed: int, name: str) -> int:
    text = f"revise/1/{purpose}/{seed}/{name}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
