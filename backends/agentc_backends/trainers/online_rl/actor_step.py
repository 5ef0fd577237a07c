"""One gradient step of the policy on utterances: their log-probabilities, a loss, clipping.

Neighbours: `losses.py` has the losses, `sampling.py` draws the utterances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

Loss: TypeAlias = Callable[[Tensor, Tensor, slice], Tensor]
"""Of log-probabilities and mask [rows, T] of some rows of a batch, which the slice names; a mean
over these rows."""


def actor_step(
    model: Any,
    optimiser: Optimizer,
    rows: Sequence[tuple[Sequence[int], Sequence[int]]],
    loss: Loss,
    *,
    micro_batch: int,
    clip: float,
) -> tuple[float, float]:
    """The loss over all rows (prompt, reply) and the norm of its gradient before it was clipped, by
    the policy's own parameters alone; `clip` 0 is none. How rows are cut into micro-batches changes
    nothing but rounding."""
    optimiser.zero_grad(set_to_none=True)
    total = 0.0
    for start in range(0, len(rows), micro_batch):
        part = slice(start, min(start + micro_batch, len(rows)))
        log_probs, mask = reply_log_probs(model, rows[part])
        share = loss(log_probs, mask, part) * ((part.stop - part.start) / len(rows))
        share.backward()
        total += float(share.detach())
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip or float("inf"))
    optimiser.step()
    return total, float(norm)


def reply_log_probs(
    model: Any, rows: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> tuple[Tensor, Tensor]:
    """Natural-log probabilities [B, T] of the replies' tokens at temperature 1, and the mask that
    is 1 on them. Rows are padded behind, where no token sees it, so that positions are right and
    a row's numbers do not depend on those beside it. Raises ValueError for an empty prompt."""
    device = next(model.parameters()).device
    width = max(len(prompt) + len(reply) for prompt, reply in rows)
    longest = max(len(reply) for _, reply in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    seen = torch.zeros(len(rows), width, dtype=torch.long)
    tokens = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros(len(rows), longest)
    for number, (prompt, reply) in enumerate(rows):
        if not prompt:
            raise ValueError("a reply needs a prompt of one token at least")
        whole = torch.tensor([*prompt, *reply])
        ids[number, : len(whole)] = whole
        seen[number, : len(whole)] = 1
        tokens[number, : len(reply)] = whole[len(prompt) :]
        mask[number, : len(reply)] = 1
    starts = torch.tensor([len(prompt) - 1 for prompt, _ in rows])
    places = (starts[:, None] + torch.arange(longest)).clamp(max=width - 1)
    states = model.base_model(
        input_ids=ids.to(device), attention_mask=seen.to(device), use_cache=False
    ).last_hidden_state
    # Only where a reply's tokens are drawn: logits of a long prompt would take most of the memory.
    chosen = states[torch.arange(len(rows), device=device)[:, None], places.to(device)]
    logits = model.get_output_embeddings()(chosen).float()
    found = torch.log_softmax(logits, dim=-1).gather(2, tokens.to(device).unsqueeze(2))[..., 0]
    return found, mask.to(device)
