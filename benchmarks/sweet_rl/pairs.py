"""Pairs of candidates of one turn for the actor: top half against bottom half of a ranking."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from benchmarks.sweet_rl.critic import Turn
from benchmarks.sweet_rl.speaker import Row, Speaker

PER_TURN = 4


def ranked_pairs(
    turns: Sequence[Turn],
    scores: Sequence[dict[str, float]],
    *,
    seed: int,
    alike: float | None = None,
) -> list[tuple[Turn, str, str]]:
    """At most PER_TURN draws (turn, chosen, rejected) of each turn, no text pair twice.

    `alike` bounds how many times longer one side may be than the other, in characters: with 1.5 a
    question meets questions and an answer answers."""
    rng = Random(seed)
    pairs = []
    for turn, score in zip(turns, scores, strict=True):
        order = sorted(turn.candidates, key=lambda text: (-score[text], text))
        top, bottom = order[: len(order) // 2], order[len(order) // 2 :]
        possible = [(a, b) for a in top for b in bottom if score[a] > score[b]]
        if alike is not None:
            possible = [
                (a, b)
                for a, b in possible
                if max(len(a), len(b)) <= alike * max(min(len(a), len(b)), 1)
            ]
        rng.shuffle(possible)
        pairs += [(turn, a, b) for a, b in list(dict.fromkeys(possible))[:PER_TURN]]
    return pairs


def random_scores(turns: Sequence[Turn], seed: int) -> list[dict[str, float]]:
    """A ranking that knows nothing: the control."""
    rng = Random(seed)
    return [{text: rng.random() for text in turn.candidates} for turn in turns]


def actor_rows(
    policy: Speaker, pairs: Sequence[tuple[Turn, str, str]], normalisation: str
) -> list[tuple[Row, Row]]:
    """Rows whose last turn is scored: `none` sums its log-probs, `trajectory` takes their mean."""

    def row(turn: Turn, text: str) -> Row:
        said = [*turn.before(), {"role": "assistant", "content": text}]
        return policy.row(said, normalisation=normalisation, last=True)

    return [(row(turn, a), row(turn, b)) for turn, a, b in pairs]
