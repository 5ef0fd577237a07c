"""Job: draw pairs of candidates of a turn by their ranks (SWEET-RL, arXiv 2503.15478, section 4.2;
the released script where the paper leaves it open), and count what became of every draw.
`python -m agentc_backends.data.ranked.job_ranked_pairs JOB.json`."""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any, TypeAlias

from agentc.program.artifact_files import PAIRS_FILE, TURNS_FILE
from agentc.program.job import iterate_rows, load_job, write_rows
from agentc_backends.data.ranked.settings import RankedRules

Row: TypeAlias = Mapping[str, Any]


@dataclass(slots=True)
class RankedCounts:
    """What happened: `turns` had candidates, `dropped` pairs are counted by reason, `skipped`
    turns too."""

    turns: int = 0
    drawn: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    def facts(self, pairs: int) -> dict[str, Any]:
        """As they stand in the manifest: ties and duplicates always, other reasons where there
        are any."""
        dropped = {"tie": self.dropped["tie"], "duplicate": self.dropped["duplicate"]}
        return {
            "ranked": self.turns,
            "drawn": self.drawn,
            "dropped": {**dropped, **{name: n for name, n in sorted(self.dropped.items()) if n}},
            "skipped": {name: n for name, n in sorted(self.skipped.items()) if n},
            "pairs": pairs,
        }


def ranked_pairs(
    turns: Iterable[Row], rules: RankedRules
) -> tuple[list[dict[str, Any]], RankedCounts]:
    """Rows of pairs.jsonl, in the order of the turns; with `order: published` shuffled as a whole,
    as published."""
    counts = RankedCounts()
    published = random.Random(PUBLISHED_SEED) if rules.order == "published" else None
    pairs: list[dict[str, Any]] = []
    seen: set[bytes] = set()
    for turn in turns:
        if len(turn["candidates"]) < 2:
            counts.skipped[turn["end"] if turn["end"] != "sampled" else "one_candidate"] += 1
            continue
        counts.turns += 1
        pairs += _pairs_of(turn, rules, published, seen, counts)
    if published is not None:
        published.shuffle(pairs)
    return pairs, counts


def _pairs_of(
    turn: Row,
    rules: RankedRules,
    published: random.Random | None,
    seen: set[bytes],
    counts: RankedCounts,
) -> Iterable[dict[str, Any]]:
    scores = _scores(turn, rules)
    order = ascending(scores)
    alike = _alike(turn, rules.length_ratio)
    if rules.draw == "best_worst":
        found = best_and_worst(order, alike)
    else:
        generator = published or turn_generator("ranked", rules.seed, turn["id"])
        found = draw_pairs(
            order, rules.pairs_per_turn, replacement=rules.replacement, generator=generator,
            alike=alike,
        )  # fmt: skip
    if not found and alike is not None:
        counts.skipped["none_of_like_length"] += 1
    counts.drawn += len(found)
    rank = {place: len(order) - at for at, place in enumerate(order)}
    copies: Counter[tuple[int, int]] = Counter()
    for chosen, rejected in found:
        reason = _unfit(turn, scores, chosen, rejected, rules.margin)
        if reason is not None and rules.keep == "distinct":
            counts.dropped[reason] += 1
            continue
        name = _texts(turn, chosen, rejected)
        if rules.dedup and name in seen:
            counts.dropped["duplicate"] += 1
            continue
        seen.add(name)
        copies[chosen, rejected] += 1
        copy = copies[chosen, rejected]
        yield _row(turn, scores, chosen, rejected, (rank[chosen], rank[rejected]), copy)


def _alike(turn: Row, ratio: float | None) -> Callable[[int, int], bool] | None:
    """Whether two candidates are of like length, in characters; None where any pair will do."""
    if ratio is None:
        return None
    lengths = [len(candidate["text"]) for candidate in turn["candidates"]]

    def alike(one: int, other: int) -> bool:
        shorter, longer = sorted((lengths[one], lengths[other]))
        return longer <= ratio * max(shorter, 1)

    return alike


def _scores(turn: Row, rules: RankedRules) -> Sequence[float]:
    if rules.ranking == "random":
        return shuffled_scores(rules.seed, turn["id"], len(turn["candidates"]))
    return [candidate["advantage"] for candidate in turn["candidates"]]


def _unfit(
    turn: Row, scores: Sequence[float], chosen: int, rejected: int, margin: float
) -> str | None:
    """Why two candidates make no pair."""
    difference = scores[chosen] - scores[rejected]
    if difference == 0:
        return "tie"
    if difference <= margin:
        return "within_margin"
    good, bad = (turn["candidates"][place]["text"] for place in (chosen, rejected))
    if good == bad:
        return "same_text"
    if not good:
        return "chosen_empty"
    return None if bad else "rejected_empty"


def _texts(turn: Row, chosen: int, rejected: int) -> bytes:
    """A digest: prompts are long, and all pairs of a job are known by one."""
    texts = [turn["candidates"][place]["text"] for place in (chosen, rejected)]
    return hashlib.sha256(json.dumps([turn["prompt"], *texts]).encode()).digest()


def _row(
    turn: Row,
    scores: Sequence[float],
    chosen: int,
    rejected: int,
    ranks: tuple[int, int],
    copy: int,
) -> dict[str, Any]:
    candidates = turn["candidates"]
    name = f"{turn['id']}:{chosen}-{rejected}"
    return {
        "id": name if copy == 1 else f"{name}.{copy}",
        "task_id": turn["task_id"],
        "split": turn.get("split"),
        "turn": turn["turn"],
        "prompt": [dict(message) for message in turn["prompt"]],
        "chosen": [_message(candidates[chosen])],
        "rejected": [_message(candidates[rejected])],
        "chosen_reward": scores[chosen],
        "rejected_reward": scores[rejected],
        "advantages": [candidates[place]["advantage"] for place in (chosen, rejected)],
        "ranks": list(ranks),
        "outcome": "self",
        "chosen_id": f"{turn['id']}:{chosen}",
        "rejected_id": f"{turn['id']}:{rejected}",
    }


def _message(candidate: Row) -> dict[str, Any]:
    cut = {"cut": True} if candidate.get("cut") else {}
    return {"role": "assistant", "content": candidate["text"], **cut}


# Draws: scores in, places of candidates out. Equal scores go by their places.

PUBLISHED_SEED = 42
"""What the released script seeds its one generator with, before the first turn."""


def ascending(scores: Sequence[float]) -> list[int]:
    """Places of the candidates, the worst first."""
    return sorted(range(len(scores)), key=lambda place: (scores[place], place))


def halves(order: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    """The lower and the upper half of a ranking; of an odd number the middle is in neither."""
    size = len(order) // 2
    return order[:size], order[len(order) - size :]


def draw_pairs(
    order: Sequence[int],
    pairs: int,
    *,
    replacement: bool,
    generator: random.Random,
    alike: Callable[[int, int], bool] | None = None,
) -> list[tuple[int, int]]:
    """So many (chosen, rejected): each chosen from the upper half, each rejected from the lower.
    Without replacement no two are the same, and there are no more than can be told apart. With
    `alike` they are drawn from the pairs of which it holds."""
    lower, upper = halves(order)
    if not lower:
        return []
    if alike is not None or not replacement:
        every = [(high, low) for low, high in product(lower, upper)]
        fit = [pair for pair in every if alike is None or alike(*pair)]
        if not replacement:
            return generator.sample(fit, min(pairs, len(fit)))
        return generator.choices(fit, k=pairs) if fit else []
    found: list[tuple[int, int]] = []
    for _ in range(pairs):
        # The lower one first, as published.
        low = generator.choice(lower)
        found.append((generator.choice(upper), low))
    return found


def best_and_worst(
    order: Sequence[int], alike: Callable[[int, int], bool] | None = None
) -> list[tuple[int, int]]:
    """The one pair of the best and the worst; with `alike`, the worst of those that are like the
    best, if any is."""
    if not order:
        return []
    best, others = order[-1], order[:-1]
    fit = (place for place in others if alike is None or alike(best, place))
    return [(best, worst) for worst in islice(fit, 1)]


def shuffled_scores(seed: int, turn: str, count: int) -> list[float]:
    """Scores that say nothing: each of 0, 1/count, 2/count ... once, in an order drawn by the seed
    and the turn."""
    scores = [place / count for place in range(count)]
    turn_generator("shuffled", seed, turn).shuffle(scores)
    return scores


def turn_generator(purpose: str, seed: int, turn: str) -> random.Random:
    """A generator of a turn's own, so that no turn's draws depend on which others there are."""
    return random.Random(hashlib.sha256(f"{purpose}/1/{seed}/{turn}".encode()).digest())


_MANY = 0.5
"""Share of draws that may be lost before the job warns."""


def main() -> int:
    """Exit 0 with pairs.jsonl written; 1 with a message when not one pair comes out, unless an
    empty result is wanted."""
    job = load_job()
    rules = job.config.read_as(RankedRules)
    job.config.assert_all_read()
    # One at a time: their candidates' tokens are many times what is kept of them.
    turns = (row for folder in job.inputs("turns") for row in iterate_rows(folder / TURNS_FILE))
    pairs, counts = ranked_pairs(turns, rules)
    facts = counts.facts(len(pairs))
    job.facts(**facts)
    print("pairs:", ", ".join(f"{name} {value}" for name, value in facts.items()))
    if not pairs:
        print(
            "pairs: not one pair came out: the candidates of every turn tie, or are the same text. "
            "Sample more of them, at a higher temperature. The counts are above.",
            file=sys.stderr,
        )
        if rules.on_empty == "error":
            return 1
    elif len(pairs) < _MANY * counts.drawn:
        job.warn(
            f"{counts.drawn - len(pairs)} of {counts.drawn} drawn pairs were left out "
            f"({', '.join(f'{name} {n}' for name, n in sorted(counts.dropped.items()) if n)}): the "
            "policy repeats itself; more candidates or a higher temperature would give other ones"
        )
    write_rows(job.out / PAIRS_FILE, pairs)
    job.progress(len(pairs), len(pairs), "pairs", force=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
