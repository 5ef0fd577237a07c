"""Tables of `results.jsonl`, with 95 % intervals from a bootstrap over seeds and, within each, over
tasks or turns. Differences are paired by task, or by turn."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_RESAMPLES = 2000
_SHOWN = ("tests", "perfect", "told", "questions", "useless", "formed")

Groups = Mapping[int, Sequence[float]]
"""Seed -> one value for each task or turn."""
Size = tuple[int, float, int]
"""What a critic was trained with: pairs, weight of the likelihood, epochs."""


def print_tables(folder: Path) -> None:
    """Everything that the folder's results hold, as markdown; of equal runs the last counts."""
    text = (folder / "results.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    for lines in (_costs(rows), _critics(rows), _updates(rows)):
        print("\n".join(lines), end="\n\n")


def interval(groups: Groups) -> tuple[float, float, float]:
    """Mean over seeds of the mean within each, and its 95 % interval."""
    rng = random.Random(0)
    values = [list(each) for each in groups.values() if each]
    means = sorted(
        sum(_mean(rng.choices(each, k=len(each))) for each in rng.choices(values, k=len(values)))
        / len(values)
        for _ in range(_RESAMPLES)
    )
    whole = sum(map(_mean, values)) / len(values)
    return whole, means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _said(groups: Groups, sign: str = "") -> str:
    mean, low, high = interval(groups)
    return f"{mean:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


def _costs(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = ["| step | seeds | CPU s, mean |", "|---|---|---|"]
    for kind in dict.fromkeys(row["kind"] for row in rows):
        found = [row["cpu"] for row in rows if row["kind"] == kind]
        lines.append(f"| {kind} | {len(found)} | {_mean(found):.0f} |")
    return lines


def _critics(rows: Sequence[dict[str, Any]]) -> list[str]:
    """By size: the share of candidate pairs that a critic orders as Monte Carlo does."""
    found: dict[tuple[float, str, Size, bool], dict[int, dict[str, Any]]] = {}
    for row in rows:
        if row["kind"] == "critic":
            size = (row["pairs"], row["nll"], row["epochs"])
            key = (row["custom"], row["first"], size, row["hidden"])
            found.setdefault(key, {})[row["seed"]] = row["states"]
    lines = [
        "| custom | first steps | trajectory pairs | hidden | seeds | by turn "
        "| useful v useless question | question v answer | hidden - without, paired by turn "
        "| of useful v useless |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (custom, first, size, hidden), seeds in sorted(found.items(), key=lambda each: each[0]):
        columns = [_by_turn(seeds, sort) for sort in ("", "questions", "answer")]
        words = [_said(_values(column)) if any(column.values()) else "-" for column in columns]
        apart = ["", ""]
        other = found.get((custom, first, size, False))
        if hidden and other is not None:
            apart = [
                _said(_apart(_by_turn(seeds, sort), _by_turn(other, sort)), "+")
                for sort in ("", "questions")
            ]
        name = _critic_words(size) if size[0] else "untrained"
        cells = [custom, first, name, "yes" if hidden else "no", len(seeds), *words, *apart]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def _critic_words(size: Size) -> str:
    return f"{size[0]}, NLL {size[1]:g}, {size[2]} epochs"


def _by_turn(seeds: Mapping[int, Mapping[str, Any]], sort: str) -> dict[int, dict[str, float]]:
    """Seed -> turn -> share of its pairs ordered right; `sort` picks pairs of questions of unlike
    worth, or of a question and an answer."""
    wanted = {"": None, "questions": {"useful", "useless"}}
    shares: dict[int, dict[str, float]] = {}
    for seed, states in seeds.items():
        shares[seed] = {}
        for turn, pairs in states.items():
            right = [
                float(ok)
                for ok, better, worse in pairs
                if sort == ""
                or (sort == "questions" and {better, worse} == wanted["questions"])
                or (sort == "answer" and (better == "answer") != (worse == "answer"))
            ]
            if right:
                shares[seed][turn] = _mean(right)
    return shares


def _values(shares: Mapping[int, Mapping[str, float]]) -> Groups:
    return {seed: list(turns.values()) for seed, turns in shares.items()}


def _apart(
    ours: Mapping[int, Mapping[str, float]], theirs: Mapping[int, Mapping[str, float]]
) -> Groups:
    both = ours.keys() & theirs.keys()
    return {s: [ours[s][t] - theirs[s][t] for t in ours[s] if t in theirs[s]] for s in sorted(both)}


def _updates(rows: Sequence[dict[str, Any]]) -> list[str]:
    """By split and arm: means over seeds, differences from the start, and each seed's form."""
    found: dict[tuple[float, str, Size, str, str], dict[int, dict[str, Any]]] = {}
    for row in rows:
        if row["kind"] == "arm":
            pairs, nll, epochs = row["critic"]
            key = (row["custom"], row["first"], (pairs, nll, epochs), row["split"], row["arm"])
            found.setdefault(key, {})[row["seed"]] = row
    lines = [
        "| custom | first steps | critic's pairs | split | arm | seeds | tests | "
        + " | ".join(_SHOWN[1:]),
        "|---" * (len(_SHOWN) + 8) + "|",
    ]
    lines[0] += " | tests - start | formed, of each seed |"
    for (custom, policy, size, split, arm), seeds in found.items():
        tasks = {seed: row["tasks"] for seed, row in seeds.items()}
        means = [f"{_mean([row[m] for row in seeds.values()]):.3f}" for m in _SHOWN[1:]]
        first = found.get((custom, policy, (0, 0, 0), split, "start"), {})
        less = {} if arm == "start" else _less(seeds, first)
        apart = _said(less, "+") if less else "-"
        formed = ", ".join(f"{row['formed']:.2f}" for _, row in sorted(seeds.items()))
        critic = _critic_words(size) if size[0] else "-"
        cells = [
            custom,
            policy,
            critic,
            split,
            arm,
            len(seeds),
            _said(tasks),
            *means,
            apart,
            formed,
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += ["", "| custom | first steps | critic's pairs | split | tests of | minus tests of "
              "| difference |"]  # fmt: skip
    lines.append("|---|---|---|---|---|---|---|")
    for (custom, policy, size, split, arm), seeds in found.items():
        for other in (f"{arm}, random", f"{arm}, without hidden"):
            if theirs := found.get((custom, policy, size, split, other)):
                cells = [custom, policy, _critic_words(size), split, arm, other]
                cells.append(_said(_less(seeds, theirs), "+"))
                lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def _less(ours: Mapping[int, dict[str, Any]], theirs: Mapping[int, dict[str, Any]]) -> Groups:
    both = sorted(ours.keys() & theirs.keys())
    return {
        s: [a - b for a, b in zip(ours[s]["tasks"], theirs[s]["tasks"], strict=True)] for s in both
    }
