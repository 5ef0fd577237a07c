"""Puts a revision together: pairs are drawn, cut, spliced, tried out; whole trajectories added; all
of it counted.

Requests cuts and trials through two functions, so that it knows no server. Rows do not depend on
how many of these are in flight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias, cast

from agentc_backends.agents.revise.judge import Cut
from agentc_backends.agents.revise.pairs import (
    Pair,
    ReplyNode,
    RevisionTree,
    TreePairs,
    draw_pairs,
    generator,
)
from agentc_backends.agents.revise.rules import ReviseRules, SplicedPart
from agentc_backends.agents.revise.splice import (
    Trial,
    shared_length,
    spliced_row,
    trajectory_row,
    trial_fields,
)


@dataclass(slots=True)
class RevisionCounts:
    """`pairs`: those that alpha and beta allow; `taken`: those that were looked at, by part;
    `left_out` by reason. `lengths`: numbers of first flagged actions (revision length, section 5 of
    the paper). `trials`: outcomes of replays. `action_tokens`: tokens of the trained replies but
    signals."""

    trees: int = 0
    trees_broken: int = 0
    leaves: int = 0
    pairs: int = 0
    taken: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    lengths: list[int] = field(default_factory=list)
    trials: Counter[str] = field(default_factory=Counter)
    other_observations: int = 0
    action_tokens: int = 0

    def facts(self) -> dict[str, Any]:
        """Mean revision length is null where no action was flagged."""
        lengths = self.lengths
        return {
            "trees": self.trees,
            "trees_broken": self.trees_broken,
            "leaves": self.leaves,
            "pairs": self.pairs,
            "pairs_taken": _sorted(self.taken),
            "left_out": _sorted(self.left_out),
            "rows": sum(self.rows.values()),
            "rows_by_part": _sorted(self.rows),
            "flagged": len(lengths),
            "revision_length": sum(lengths) / len(lengths) if lengths else None,
            "verified": self.trials["verified"],
            "unverified": _sorted(
                Counter({name: n for name, n in self.trials.items() if name != "verified"})
            ),
            "other_observations": self.other_observations,
            "action_tokens": self.action_tokens,
        }


def judge_facts(rows: Sequence[Mapping[str, Any]], wanted: int) -> dict[str, Any]:
    """What asking has cost: `judgements` answers served `wanted` questions of pairs."""
    verdicts = Counter(row["verdict"] for row in rows)
    return {
        "judgements": len(rows),
        "judgements_wanted": wanted,
        "verdicts": _sorted(verdicts),
        "unparsed_share": verdicts["unparsed"] / len(rows) if rows else None,
        "judge_history_cut": sum(row["left_out"] > 0 for row in rows),
        "judge_prompt_tokens": sum(row["tokens"][0] for row in rows),
        "judge_completion_tokens": sum(row["tokens"][1] for row in rows),
    }


def _sorted(counter: Counter[str]) -> dict[str, int]:
    return {name: count for name, count in sorted(counter.items()) if count}


Row: TypeAlias = dict[str, Any]
FindCuts: TypeAlias = Callable[[Sequence[Pair]], Awaitable[Sequence[Cut]]]
TryOut: TypeAlias = Callable[[Sequence[tuple[Pair, int]]], Awaitable[Sequence[Trial | None]]]
"""Trials of pairs cut at a length; None for one that was lost to an infrastructure error."""

SPLICED: tuple[SplicedPart, ...] = ("revision", "direct")
_BATCH = 64
"""Fewest pairs that are looked at together once most of the wanted rows are there."""


@dataclass(frozen=True, slots=True)
class _Made:
    place: tuple[int, int]
    row: Row


async def collect(
    trees: Sequence[RevisionTree],
    rules: ReviseRules,
    counts: RevisionCounts,
    find_cuts: FindCuts,
    try_out: TryOut | None,
) -> list[Row]:
    """All rows, tree by tree, the parts of a tree in the order of `rules.parts`."""
    numbers = {tree.name: number for number, tree in enumerate(trees)}
    made: list[tuple[tuple[int, int, int], Row]] = []
    spliced = [part for part in SPLICED if part in rules.parts]
    pairs = [TreePairs(tree, rules) for tree in trees] if spliced else []
    counts.pairs = sum(each.available for each in pairs)
    for part in spliced:
        finder = find_cuts if part == "revision" else _whole
        order = rules.parts.index(part)
        for each in await _spliced(part, pairs, rules, counts, finder, try_out, numbers):
            made.append(((each.place[0], order, each.place[1]), each.row))
    order = min((rules.parts.index(p) for p in ("good", "optimal") if p in rules.parts), default=0)
    for place, (tree, leaf, kind) in enumerate(_trajectories(trees, rules, counts)):
        counts.action_tokens += sum(node.tokens for node in tree.steps(leaf.id))
        counts.rows[kind] += 1
        row = trajectory_row(kind, tree, leaf, rules.observation_prefix)
        made.append(((numbers[tree.name], order, place), row))
    return [row for _, row in sorted(made, key=lambda each: each[0])]


async def _whole(pairs: Sequence[Pair]) -> Sequence[Cut]:
    return [Cut(len(pair.tree.steps(pair.bad))) for pair in pairs]


async def _spliced(
    part: SplicedPart,
    trees: Sequence[TreePairs],
    rules: ReviseRules,
    counts: RevisionCounts,
    find_cuts: FindCuts,
    try_out: TryOut | None,
    numbers: dict[str, int],
) -> list[_Made]:
    """Draws pairs until `max_revision` rows are made or there are no more."""
    waiting = draw_pairs(trees, part, rules)
    wanted = rules.max_revision
    made: list[_Made] = []
    seen: set[tuple[str, int, int]] = set()
    while wanted is None or len(made) < wanted:
        size = None if wanted is None else max(wanted - len(made), min(wanted, _BATCH))
        batch = list(islice(waiting, size))
        if not batch:
            break
        counts.taken[part] += len(batch)
        kept: list[tuple[Pair, Cut]] = []
        for pair, cut in zip(batch, await find_cuts(batch), strict=True):
            if cut.length is None:
                counts.left_out[str(cut.without)] += 1
                continue
            last = pair.tree.steps(pair.bad)[cut.length - 1]
            splice = (pair.tree.name, last.id, pair.good)
            if rules.dedup_revision and splice in seen:
                counts.left_out["repeated"] += 1
                continue
            seen.add(splice)
            kept.append((pair, cut))
        made += await _rows(part, kept, rules, counts, try_out, numbers)
    if wanted is not None:
        made = made[:wanted]
    for each in made:
        _count(part, each.row, counts)
    return made


async def _rows(
    part: SplicedPart,
    kept: Sequence[tuple[Pair, Cut]],
    rules: ReviseRules,
    counts: RevisionCounts,
    try_out: TryOut | None,
    numbers: dict[str, int],
) -> list[_Made]:
    assert rules.signal is not None
    trials: Sequence[Trial | None] = [None] * len(kept)
    if try_out is not None:
        trials = await try_out([(pair, cast(int, cut.length)) for pair, cut in kept])
    made = []
    for (pair, cut), trial in zip(kept, trials, strict=True):
        row = spliced_row(part, pair, cut, rules.signal, rules.observation_prefix)
        if try_out is not None:
            if trial is None:
                counts.left_out["error"] += 1
                continue
            counts.trials["verified" if trial.verified else str(trial.because)] += 1
            counts.other_observations += trial.verified and not trial.same_observations
            if rules.verify == "drop" and not trial.verified:
                counts.left_out["unverified"] += 1
                continue
            row |= trial_fields(trial)
        tokens = _good_tokens(pair, cast(int, cut.length))
        made.append(_Made((numbers[pair.tree.name], pair.position), {**row, "tokens": tokens}))
    return made


def _good_tokens(pair: Pair, length: int) -> int:
    bad, good = pair.tree.steps(pair.bad)[:length], pair.tree.steps(pair.good)
    return sum(node.tokens for node in good[shared_length(bad, good) :])


def _count(part: str, row: Row, counts: RevisionCounts) -> None:
    counts.rows[part] += 1
    counts.action_tokens += row.pop("tokens")
    if row["flagged"] is not None:
        counts.lengths.append(row["flagged"])


def _trajectories(
    trees: Sequence[RevisionTree], rules: ReviseRules, counts: RevisionCounts
) -> list[tuple[RevisionTree, ReplyNode, str]]:
    """Leaves whose whole paths become rows, each in one part: `optimal` ones with the largest
    reward, the others that pass alpha as `good` ones."""
    found: dict[str, list[tuple[RevisionTree, ReplyNode, str]]] = {"good": [], "optimal": []}
    seen: set[tuple[str, ...]] = set()
    for tree in trees:
        for leaf in tree.leaves:
            part = _part_of(leaf, rules)
            if part is None:
                continue
            replies = tuple(node.reply for node in (*tree.given, *tree.steps(leaf.id)))
            if rules.dedup_good and (tree.task_id, *replies) in seen:
                counts.left_out[f"{part}_repeated"] += 1
                continue
            seen.add((tree.task_id, *replies))
            found[part].append((tree, leaf, part))
    for part, rows in found.items():
        if rules.max_good is not None and rules.max_good < len(rows):
            chosen = generator(part, rules.seed, "").sample(range(len(rows)), rules.max_good)
            found[part] = [rows[place] for place in sorted(chosen)]
    return found["optimal"] + found["good"]


def _part_of(leaf: ReplyNode, rules: ReviseRules) -> str | None:
    if "optimal" in rules.parts:
        assert rules.best_reward is not None
        if leaf.reward >= rules.best_reward:
            return "optimal"
    if "good" in rules.parts:
        assert rules.bars is not None
        if rules.bars.is_good(leaf.reward):
            return "good"
    return None
