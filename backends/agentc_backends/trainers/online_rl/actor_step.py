"""One gradient step on utterances: their log-probabilities, a loss, clipping.

Neighbours: `losses.py` has the losses, `sampling.py` draws the utterances, `shared_texts.py` lays
them out; `token_values.py` reads the same places of a body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from agentc_backends.trainers.online_rl.shared_texts import Row, in_texts, reply_states

Loss: TypeAlias = Callable[[Tensor, Tensor, Sequence[int]], Tensor]
"""Of log-probabilities and mask [rows, T] of some rows of a batch, whose numbers these are; a mean
over these rows."""


RowsLoss: TypeAlias = Callable[[Sequence[Row], Sequence[int]], Tensor]
"""Of some rows of a batch, whose numbers these are: what they add to the loss of all."""


def actor_step(
    model: Any,
    optimiser: Optimizer,
    rows: Sequence[Row],
    loss: Loss,
    *,
    micro_batch: int,
    clip: float,
) -> tuple[float, float]:
    """`gradient_step` of the policy by the log-probabilities of its replies alone; the loss is a
    mean over rows."""

    def share(some: Sequence[Row], part: Sequence[int]) -> Tensor:
        log_probs, mask = reply_log_probs(model, some)
        return loss(log_probs, mask, part) * (len(part) / len(rows))

    return gradient_step(model, optimiser, rows, share, micro_batch=micro_batch, clip=clip)


def gradient_step(
    model: nn.Module,
    optimiser: Optimizer,
    rows: Sequence[Row],
    loss: RowsLoss,
    *,
    micro_batch: int,
    clip: float,
) -> tuple[float, float]:
    """The loss over all rows (prompt, reply) and the norm of its gradient before it was clipped, by
    the model's own parameters alone; `clip` 0 is none. How rows are cut into micro-batches, of so
    many texts each, changes nothing but rounding."""
    optimiser.zero_grad(set_to_none=True)
    total = 0.0
    texts = in_texts(rows)
    for start in range(0, len(texts), micro_batch):
        part = [place for text in texts[start : start + micro_batch] for place in text]
        share = loss([rows[place] for place in part], part)
        share.backward()
        total += float(share.detach())
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip or float("inf"))
    optimiser.step()
    return total, float(norm)


def reply_log_probs(model: Any, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
    """Natural-log probabilities [B, T] of the replies' tokens at temperature 1, and the mask that
    is 1 on them. Raises ValueError for an empty prompt."""
    states, tokens, mask = reply_states(model.base_model, rows)
    return _of_tokens(_log_chances(model, states), tokens), mask


def reply_chances(model: Any, rows: Sequence[Row]) -> tuple[Tensor, Tensor, Tensor]:
    """The same two, and the entropy [B, T] in nats of what each token is drawn from. It needs the
    memory of all logits twice."""
    states, tokens, mask = reply_states(model.base_model, rows)
    chances = _log_chances(model, states)
    return _of_tokens(chances, tokens), mask, -(chances.exp() * chances).sum(dim=2)


def of_rows(
    read: Callable[[Sequence[Row]], tuple[Tensor, Tensor]], rows: Sequence[Row], micro_batch: int
) -> list[Tensor]:
    """For each row [tokens of its reply], without gradient, in pieces of so many texts."""
    found: dict[int, Tensor] = {}
    texts = in_texts(rows)
    for start in range(0, len(texts), micro_batch):
        part = [place for text in texts[start : start + micro_batch] for place in text]
        with torch.no_grad():
            read_of, _ = read([rows[place] for place in part])
        for place, each in zip(part, read_of, strict=True):
            found[place] = each[: len(rows[place][1])]
    return [found[place] for place in range(len(rows))]


def _log_chances(model: Any, states: Tensor) -> Tensor:
    """[B, T, V], in float32 at least."""
    logits: Tensor = model.get_output_embeddings()(states)
    return torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)), dim=-1)


def _of_tokens(chances: Tensor, tokens: Tensor) -> Tensor:
    """[B, T]"""
    return chances.gather(2, tokens.unsqueeze(2))[..., 0]
