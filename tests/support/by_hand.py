"""What each line of logs/steps.jsonl must say, worked out from the rows: one forward of a row at a
time, and the order of rows as order.py says it is. Serves a training that changes nothing (its
learning rate is too small), so that the starting model gives every step's numbers.

python by_hand.py sft|dpo|micro_batches ARGUMENTS   prints the lines as JSON, where tests and
trainers run in other environments; ARGUMENTS are those of the function, as JSON
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from agentc_backends.data.chat.rows import MaskRules, Side, encode_pairs, encode_rows
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.models.checkpoint import load_model

STILL = 1e-12
"""A learning rate that moves no weight."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Sums over the trained tokens of a row."""

    count: int
    log_prob: float
    entropy: float
    correct: int
    logits: float


def scores(model: Any, side: Side) -> Scores:
    """Those of one row under a model."""
    with torch.no_grad():
        logits = model(torch.tensor([side.ids])).logits[0, :-1].double()
    chosen = torch.tensor(side.trained[1:])
    wanted = torch.tensor(side.ids[1:])
    log_probs = torch.log_softmax(logits, dim=-1)
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    return Scores(
        count=int(chosen.sum()),
        log_prob=float(log_probs.gather(1, wanted[:, None])[:, 0][chosen].sum()),
        entropy=float(entropy[chosen].sum()),
        correct=int((logits.argmax(-1) == wanted)[chosen].sum()),
        logits=float(logits.mean(-1)[chosen].sum()),
    )


def steps_of_rows(rows: int, global_batch: int, epochs: int, seed: int = 0) -> Iterator[list[int]]:
    """The rows of each optimiser step: a permutation an epoch, its last step the smaller one."""
    for epoch in range(epochs):
        order = list(range(rows))
        random.Random(f"{seed}/{epoch}").shuffle(order)
        yield from (order[start : start + global_batch] for start in range(0, rows, global_batch))


def sft_lines(
    model: Path, rows: Sequence[Mapping[str, Any]], mask: Mapping[str, Any], **order: Any
) -> list[dict[str, float]]:
    """The numbers of every step of an SFT."""
    sides, _ = encode_rows(load_encoder(model), rows, MaskRules(**mask))
    policy = load_model(model)
    found = [scores(policy, side) for side in sides]
    lines, seen = [], 0
    for step in steps_of_rows(len(rows), **order):
        held = [found[row] for row in step]
        count = sum(row.count for row in held)
        seen += sum(len(sides[row].ids) for row in step)
        lines.append(
            {
                "loss": -sum(row.log_prob for row in held) / count,
                "entropy": sum(row.entropy for row in held) / count,
                "mean_token_accuracy": sum(row.correct for row in held) / count,
                "num_tokens": float(seen),
                "trained_tokens": float(count),
            }
        )
    return lines


def dpo_lines(
    model: Path,
    reference: Path,
    rows: Sequence[Mapping[str, Any]],
    mask: Mapping[str, Any],
    beta: float,
    nll_weight: float,
    **order: Any,
) -> list[dict[str, float]]:
    """The numbers of every step of a DPO with the sigmoid loss."""
    pairs, _ = encode_pairs(load_encoder(model), rows, MaskRules(**mask))
    policy, before = load_model(model), load_model(reference)
    found = [[scores(policy, side) for side in pair] for pair in pairs]
    rewards = [
        [
            beta * (row.log_prob - scores(before, side).log_prob)
            for row, side in zip(scored, pair, strict=True)
        ]
        for scored, pair in zip(found, pairs, strict=True)
    ]
    lines, seen = [], 0
    for step in steps_of_rows(len(rows), **order):
        chosen = [found[row][0] for row in step]
        rejected = [found[row][1] for row in step]
        wins = [rewards[row][0] - rewards[row][1] for row in step]
        tokens = [sum(row.count for row in side) for side in (chosen, rejected)]
        seen += sum(len(side.ids) for row in step for side in pairs[row])
        nll = -sum(row.log_prob for row in chosen) / tokens[0]
        softplus = [float(torch.nn.functional.softplus(torch.tensor(-win))) for win in wins]
        lines.append(
            {
                "loss": _mean(softplus) + nll_weight * nll,
                "rewards/chosen": _mean([rewards[row][0] for row in step]),
                "rewards/rejected": _mean([rewards[row][1] for row in step]),
                "rewards/margins": _mean(wins),
                "rewards/accuracies": _mean([float(win > 0) for win in wins]),
                "logps/chosen": _mean([row.log_prob for row in chosen]),
                "logps/rejected": _mean([row.log_prob for row in rejected]),
                "logits/chosen": sum(row.logits for row in chosen) / tokens[0],
                "logits/rejected": sum(row.logits for row in rejected) / tokens[1],
                "entropy": sum(row.entropy for row in chosen + rejected) / sum(tokens),
                "mean_token_accuracy": sum(row.correct for row in chosen) / tokens[0],
                "num_tokens": float(seen),
            }
        )
    return lines


def micro_batch_lines(
    model: Path,
    rows: Sequence[Mapping[str, Any]],
    mask: Mapping[str, Any],
    steps: int,
    global_batch: int,
    micro_batch: int,
    seed: int,
) -> list[dict[str, float]]:
    """The numbers of every step of an SFT by XTuner: its loss is a mean over micro-batches, and a
    last step that an epoch does not fill takes rows of the next pass."""
    sides, _ = encode_rows(load_encoder(model), rows, MaskRules(**mask))
    policy = load_model(model)
    found = [scores(policy, side) for side in sides]
    stream = [row for step in steps_of_rows(len(rows), len(rows), steps, seed) for row in step]
    lines, seen = [], 0
    for start in range(0, steps * global_batch, global_batch):
        step = stream[start : start + global_batch]
        parts = [step[at : at + micro_batch] for at in range(0, global_batch, micro_batch)]
        losses = [
            -sum(found[row].log_prob for row in part) / sum(found[row].count for row in part)
            for part in parts
        ]
        seen += sum(len(sides[row].ids) for row in step)
        trained = float(sum(found[row].count for row in step))
        lines.append({"loss": _mean(losses), "num_tokens": float(seen), "trained_tokens": trained})
    return lines


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _main() -> None:
    arguments = json.loads(sys.argv[2])
    for name in ("model", "reference"):
        if name in arguments:
            arguments[name] = Path(arguments[name])
    lines = {"sft": sft_lines, "dpo": dpo_lines, "micro_batches": micro_batch_lines}[sys.argv[1]]
    print(json.dumps(lines(**arguments)))


if __name__ == "__main__":
    _main()
