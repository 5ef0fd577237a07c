"""A step of ArCHer's policy on fresh replies to the turns of conversations, each prompt read once
and each reply read behind a prompt of its own: `python -m benchmarks.shared_texts [--rounds N]`, in
an interpreter with torch.

512 replies of 10 tokens to turns of conversations of 6 to 19 turns, 25 tokens a turn behind 30; a
Llama of two layers of 64. A prompt of its own begins with a token that no other has, so that
nothing is shared and as much is computed as without shared texts. By turns, medians.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Sequence
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as a job is started

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from agentc_backends.trainers.online_rl.learning import Row, actor_step, group_by_text, shared_text
from agentc_backends.trainers.online_rl.losses import policy_gradient_loss

_ROWS, _VOCABULARY = 512, 512


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(prog="benchmarks.shared_texts", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    shape = {"hidden_size": 64, "intermediate_size": 256, "num_attention_heads": 4}
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=_VOCABULARY + _ROWS,
            num_hidden_layers=2,
            max_position_embeddings=1024,
            **shape,
        )
    )
    shared = _rows(random.Random(1))
    alone = [
        ([_VOCABULARY + number, *prompt[1:]], reply)
        for number, (prompt, reply) in enumerate(shared)
    ]
    print("| texts at a time | each reply alone | each prompt once | ratio |")
    print("|---|---|---|---|")
    for micro_batch in (8, 16, 32):
        took = [
            (_seconds(model, alone, micro_batch), _seconds(model, shared, micro_batch))
            for _ in range(options.rounds)
        ]
        one, other = (median(each) for each in zip(*took, strict=True))
        ratio = median(first / second for first, second in took)
        print(f"| {micro_batch} | {one:.2f} s of CPU | {other:.2f} s | {ratio:.1f} |")
    print(f"\ntokens read: {_tokens(alone)} and {_tokens(shared)}")


def _rows(chance: random.Random) -> list[Row]:
    rows: list[Row] = []
    while len(rows) < _ROWS:
        talk = _said(chance, 30)
        for _ in range(chance.randrange(6, 20)):
            rows.append(([*talk], _said(chance, 10)))
            talk += _said(chance, 25)
    return rows[:_ROWS]


def _said(chance: random.Random, tokens: int) -> list[int]:
    return [chance.randrange(_VOCABULARY) for _ in range(tokens)]


def _seconds(model: LlamaForCausalLM, rows: Sequence[Row], micro_batch: int) -> float:
    weights = torch.linspace(-1, 1, len(rows))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.0)

    def loss(log_probs: Tensor, mask: Tensor, part: Sequence[int]) -> Tensor:
        return policy_gradient_loss(log_probs, mask, weights[[*part]])

    started = time.process_time()
    actor_step(model, optimiser, rows, loss, micro_batch=micro_batch, clip=1.0)
    return time.process_time() - started


def _tokens(rows: Sequence[Row]) -> int:
    return sum(
        len(shared_text([rows[place] for place in text]).ids) for text in group_by_text(rows)
    )


if __name__ == "__main__":
    main()
