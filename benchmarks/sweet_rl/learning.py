"""The two losses of the experiment: imitation of dialogues, and preferences with an NLL term.

One preference loss serves critic and actor: they differ in rows and weights (`speaker.Row`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import torch

from benchmarks.sweet_rl.speaker import Row, Speaker, weighted

BATCH = 16
_WARM_UP = 0.05
_WINDOW = 32


@dataclass(frozen=True, slots=True)
class Update:
    """How preferences are trained. `beta` 0 leaves the NLL of the chosen sides alone."""

    lr: float
    beta: float
    nll_weight: float
    epochs: int = 1


def imitate(speaker: Speaker, rows: Sequence[Row], lr: float, seed: int) -> list[float]:
    """Train on the counted tokens of every row once, in place. Returns each step's loss."""
    batches = list(_batches([len(row.ids) for row in rows], 1, seed))
    optimiser = _Optimiser(speaker, lr, len(batches))
    losses = []
    for batch in batches:
        chosen = [rows[i] for i in batch]
        _, means = weighted(speaker.model, chosen)
        counts = torch.tensor([sum(w > 0 for w in row.weights) for row in chosen])
        losses.append(optimiser.step(-(means * counts).sum() / counts.sum()))
    return losses


def prefer(
    speaker: Speaker, pairs: Sequence[tuple[Row, Row]], update: Update, seed: int
) -> list[float]:
    """DPO on (chosen, rejected) against the weights at the start, in place:
    -log sigmoid(beta (h+ - h-)) + nll_weight * NLL(chosen), h a weighted sum of log-ratios.
    Returns each step's accuracy."""
    sides = [side for pair in pairs for side in pair]
    before = torch.tensor(speaker.scores(sides)).view(-1, 2)
    lengths = [max(len(a.ids), len(b.ids)) for a, b in pairs]
    batches = list(_batches(lengths, update.epochs, seed))
    optimiser = _Optimiser(speaker, update.lr, len(batches))
    accuracies = []
    for batch in batches:
        scores, means = weighted(speaker.model, [side for i in batch for side in pairs[i]])
        ratios = scores.view(-1, 2) - before[batch]
        gaps = ratios[:, 0] - ratios[:, 1]
        chosen = means.view(-1, 2)[:, 0]
        loss = -torch.nn.functional.logsigmoid(update.beta * gaps).mean()
        optimiser.step(loss - update.nll_weight * chosen.mean())
        accuracies.append(float((gaps > 0).float().mean()))
    return accuracies


class _Optimiser:
    """AdamW with clipping, a warm-up and a cosine to zero."""

    def __init__(self, speaker: Speaker, lr: float, steps: int) -> None:
        self.parameters = list(speaker.model.parameters())
        self.adam = torch.optim.AdamW(self.parameters, lr, (0.9, 0.98), weight_decay=0.0)
        warm = max(int(_WARM_UP * steps), 1)

        def factor(step: int) -> float:
            rest = (step - warm) / max(steps - warm, 1)
            return (step + 1) / warm if step < warm else 0.5 * (1 + math.cos(math.pi * rest))

        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.adam, factor)

    def step(self, loss: torch.Tensor) -> float:
        self.adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.adam.step()
        self.schedule.step()
        return float(loss.detach())


def _batches(lengths: Sequence[int], epochs: int, seed: int) -> Iterator[list[int]]:
    """Every index once an epoch, in batches of like length."""
    rng = Random(seed)
    for _ in range(epochs):
        order = rng.sample(range(len(lengths)), len(lengths))
        size = BATCH * _WINDOW
        batches = []
        for first in range(0, len(order), size):
            window = sorted(order[first : first + size], key=lambda i: lengths[i])
            batches += [window[i : i + BATCH] for i in range(0, len(window), BATCH)]
        rng.shuffle(batches)
        yield from batches
