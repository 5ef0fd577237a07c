"""The numbers of a logged line, as means over what its steps hold.

TRL means over the micro-batches since the line before, each of which counts alike: the empty rows
that fill up an epoch's last one, and a micro-batch of few tokens as much as one of many. Here a
step's number is a mean over its own pairs or trained tokens, and a line's the mean of its steps,
as its loss is. Used by trainers.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

SFT_COUNTS = {"entropy": "tokens", "mean_token_accuracy": "tokens"}
"""By number that TRL's SFTTrainer gives for a micro-batch: what it is a mean over."""

DPO_COUNTS = {
    "entropy": "tokens",
    "mean_token_accuracy": "chosen",
    "logits/chosen": "chosen",
    "logits/rejected": "rejected",
    **{f"rewards/{name}": "pairs" for name in ("chosen", "rejected", "margins", "accuracies")},
    **{f"logps/{name}": "pairs" for name in ("chosen", "rejected")},
}
"""The same of DPOTrainer. Whatever else TRL gives is left out: it would count padding."""

CRITIC_COUNTS = {name: of for name, of in DPO_COUNTS.items() if of == "pairs"}
"""The same of a critic's trainer on pairs, which is ours."""


class StepMeans:
    """Collects numbers by the step they belong to, until a line is due."""

    def __init__(self, counts: Mapping[str, str]) -> None:
        self._counts = counts
        # By step and name: the sum, and what it was summed over.
        self._sums: dict[int, dict[str, tuple[float, float]]] = {}

    def add(
        self, step: int, means: Mapping[str, Sequence[float]], held: Mapping[str, tuple[int, int]]
    ) -> None:
        """Take a micro-batch's means, the last of each list, over all processes.

        `held` says of each kind of thing how many TRL divided by and how many count: they differ
        in pairs, where an empty one adds nothing to a sum.
        """
        sums = self._sums.setdefault(step, {})
        for name, of in self._counts.items():
            total, count = sums.get(name, (0.0, 0.0))
            divided_by, counted = held[of]
            sums[name] = total + means[name][-1] * divided_by, count + counted

    def take(self) -> dict[str, float]:
        """The means over the steps since this was last asked."""
        steps: Iterable[dict[str, tuple[float, float]]] = self._sums.values()
        found = [
            {name: total / count for name, (total, count) in sums.items() if count}
            for sums in steps
        ]
        self._sums = {}
        names = [name for name in self._counts if any(name in step for step in found)]
        return {name: _mean([step[name] for step in found if name in step]) for name in names}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
