"""What is compared: rankings by critic and updates of the actor, each arm one row of the table."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.sweet_rl.learning import Update

CRITIC = Update(lr=1e-3, beta=1.0, nll_weight=0.01, epochs=6)


@dataclass(frozen=True, slots=True)
class Arm:
    """`ranking`: hidden, history (a critic without hidden information) or random. `alike`: pairs of
    like with like alone, by length. `normalisation`: none (summed log-probs) or trajectory."""

    name: str
    ranking: str
    update: Update
    alike: float | None = None
    normalisation: str = "none"


_LR = 3e-4
_ALIKE = 1.5
ARMS = (
    Arm("published", "hidden", Update(_LR, 0.1, 0.01)),
    Arm("nll 1", "hidden", Update(_LR, 0.1, 1)),
    Arm("nll 20", "hidden", Update(_LR, 0.1, 20)),
    Arm("mean, nll 1", "hidden", Update(_LR, 2, 1), normalisation="trajectory"),
    Arm("mean, nll 10", "hidden", Update(_LR, 2, 10), normalisation="trajectory"),
    Arm("alike", "hidden", Update(_LR, 0.1, 0.01), _ALIKE),
    Arm("alike, nll 1", "hidden", Update(_LR, 0.1, 1), _ALIKE),
    Arm("alike, nll 10", "hidden", Update(_LR, 0.1, 10), _ALIKE),
    Arm("nll alone", "hidden", Update(_LR, 0, 1)),
    Arm("alike, nll 1, without hidden", "history", Update(_LR, 0.1, 1), _ALIKE),
    Arm("alike, nll 1, random", "random", Update(_LR, 0.1, 1), _ALIKE),
    Arm("nll alone, without hidden", "history", Update(_LR, 0, 1)),
    Arm("nll alone, random", "random", Update(_LR, 0, 1)),
)
