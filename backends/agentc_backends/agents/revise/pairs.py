"""Pairs good and bad leaves of a tree (Agent-R, section 3.2, eq. 4, and `path_collection.py`).

A tree of 5,000 leaves has millions of pairs, so they are numbered, not listed: what is drawn is
made. Only `published`, which has to shuffle all of them to give their order, lists numbers.
"""

from __future__ import annotations

import hashlib
import random
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import overload

from agentc_backends.agents.revise.rules import Bars, ReviseRules, SignalRules
from agentc_backends.agents.revise.trees import RevisionTree


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

    def __init__(self, tree: RevisionTree, bars: Bars) -> None:
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


def _first_bad(rewards: Sequence[float], good: float, bars: Bars) -> int:
    """The first place whose reward is bad beside `good`; all later ones are lower."""
    low, high = 0, len(rewards)
    while low < high:
        middle = (low + high) // 2
        if bars.tells(good, rewards[middle]):
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
            draws = permuted(self.available, generator("pairs", rules.seed, tree.name))
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
    tree: RevisionTree, bars: Bars, signal: SignalRules, seed: int
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


def drawn_pairs(trees: Sequence[TreePairs], part: str, rules: ReviseRules) -> Iterator[Pair]:
    """The pairs of all trees: in order, or in random order where only some are wanted."""
    ends = list(accumulate(len(pairs) for pairs in trees))
    total = ends[-1] if ends else 0
    numbers: Iterator[int] = iter(range(total))
    if rules.max_revision is not None and rules.max_revision < total:
        numbers = permuted(total, generator(part, rules.seed, ""))
    for number in numbers:
        tree = bisect_right(ends, number)
        yield trees[tree][number - (ends[tree - 1] if tree else 0)]


def permuted(total: int, source: random.Random) -> Iterator[int]:
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
