"""What each token of a side counts in its score (SWEET-RL, arXiv 2503.15478, equations 2 and 3).

A score is the sum over tokens of weight times log-ratio. Plain Python, so that trainers of every
library and whoever ranks agree on it. Neighbour: `rows.py`.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal, TypeAlias

from agentc_backends.data.chat.rows import Side

Normalisation: TypeAlias = Literal["turn", "trajectory", "none"]


def score_weights(side: Side, normalisation: Normalisation) -> list[float]:
    """One weight for each token, 0 where it is not scored: `turn` gives the sum over turns of the
    mean over a turn's tokens (the paper), `trajectory` the mean over all tokens (the released
    code), `none` the sum. `side.turns` says which turn a token is of; the first token of a row is
    never predicted."""
    scored = [index > 0 and trained for index, trained in enumerate(side.trained)]
    if normalisation == "none":
        return [float(each) for each in scored]
    turns = side.turns if normalisation == "turn" else [0] * len(side.ids)
    sizes = Counter(turn for turn, each in zip(turns, scored, strict=True) if each)
    return [1 / sizes[turn] if each else 0.0 for turn, each in zip(turns, scored, strict=True)]
