"""Pairs of good and bad leaves: which, in what number, drawn at what cost."""

from __future__ import annotations

import random
import time
from collections import Counter
from itertools import islice
from typing import Any

import pytest
from tests.backends.revise.released import grown, node, rules, signal, tree_of, wide_row

from agentc_backends.agents.revise.pairs import (
    PairSpace,
    RevisionTree,
    TreePairs,
    draw_pairs,
    permutation,
)
from agentc_backends.agents.revise.rules import RewardThresholds


def by_definition(tree: RevisionTree, bars: RewardThresholds) -> list[tuple[int, int]]:
    leaves = tree.leaves
    return [
        (good, bad)
        for good in range(len(leaves))
        for bad in range(len(leaves))
        if good != bad
        and bars.is_good(leaves[good].reward)
        and bars.separates(leaves[good].reward, leaves[bad].reward)
    ]


@pytest.mark.parametrize("alpha_is", ["above", "at_least"])
@pytest.mark.parametrize("beta_is", ["gap", "ceiling"])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("beta", [0.0, 0.2, 0.5])
def test_the_pairs_are_those_of_the_definition(
    alpha: float, beta: float, alpha_is: Any, beta_is: Any
) -> None:
    bars = RewardThresholds(alpha=alpha, alpha_is=alpha_is, beta=beta, beta_is=beta_is)
    source = random.Random(0)
    for leaves in (0, 1, 2, 7, 40):
        nodes = [node(0, None)]
        nodes += [node(n, 0, source.choice((0, 0.1, 0.3, 0.5, 0.7, 1.0))) for n in range(1, leaves)]
        tree = tree_of(grown(nodes, "t"))
        assert list(PairSpace(tree, bars)) == by_definition(tree, bars)


def test_leaves_are_terminal_without_children_and_sorted_by_reward() -> None:
    nodes = [
        node(0, None),
        node(1, 0, 0.2, leaf=False),
        node(2, 0, 0.4),
        node(3, 1, 0.4),
        node(4, 1, 1.0),
        node(5, 0, 0.9, leaf=False),  # never expanded: no leaf
    ]
    tree = tree_of(grown(nodes, "t"))
    # Of equal rewards the one that a depth-first walk meets first.
    assert [leaf.id for leaf in tree.leaves] == [4, 3, 2]
    assert [step.id for step in tree.steps(4)] == [1, 4]


def test_a_cap_draws_evenly_and_every_time_the_same() -> None:
    tree = tree_of(wide_row(60))
    settings = rules(alpha=0.5, max_pairs_per_tree=10)
    pairs = TreePairs(tree, settings)
    assert len(pairs) == 10
    assert pairs.available > 500
    assert list(pairs) == list(TreePairs(tree, settings))
    assert list(pairs) != list(TreePairs(tree, rules(alpha=0.5, max_pairs_per_tree=10, seed=4)))
    # Thoughts belong to the pair: a smaller draw does not change them.
    everything = {pair.name: pair.thought for pair in TreePairs(tree, rules(alpha=0.5))}
    assert all(everything[pair.name] == pair.thought for pair in pairs)
    assert len(set(everything.values())) == 10


def test_a_wanted_number_is_drawn_from_all_trees() -> None:
    trees = [TreePairs(tree_of(wide_row(30, f"t{n}")), rules(alpha=0.5)) for n in range(20)]
    settings = rules(alpha=0.5, max_revision=100)
    drawn = list(islice(draw_pairs(trees, "direct", settings), 100))
    assert len({pair.name for pair in drawn}) == 100
    assert len(Counter(pair.tree.name for pair in drawn)) > 15


def test_numbers_in_random_order_are_all_of_them_once() -> None:
    for total in (0, 1, 2, 17):
        assert sorted(permutation(total, random.Random(total))) == list(range(total))
    firsts = Counter(next(permutation(4, random.Random(seed))) for seed in range(4000))
    assert all(800 < count < 1200 for count in firsts.values())


def test_five_thousand_leaves_cost_what_is_kept() -> None:
    tree = tree_of(wide_row(5000))
    started = time.process_time()
    pairs = TreePairs(tree, rules(alpha=0.5, max_pairs_per_tree=50))
    kept = list(pairs)
    seconds = time.process_time() - started
    assert pairs.available > 5_000_000
    assert len(kept) == 50
    assert seconds < 2.0


def test_the_published_order_with_a_cap_is_its_beginning() -> None:
    tree = tree_of(wide_row(40))
    published = signal(draw="published")
    whole = list(TreePairs(tree, rules(alpha=0.5, signals=published)))
    capped = list(TreePairs(tree, rules(alpha=0.5, signals=published, max_pairs_per_tree=7)))
    assert capped == whole[:7]
    everything = TreePairs(tree, rules(alpha=0.5))
    assert {pair.name for pair in whole} == {pair.name for pair in everything}
