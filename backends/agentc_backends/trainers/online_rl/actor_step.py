"""One gradient step of the policy on utterances: their log-probabilities, a loss, clipping.

Neighbours: `losses.py` has the losses, `sampling.py` draws the utterances.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

Row: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""A prompt and a reply, in tokens."""
Loss: TypeAlias = Callable[[Tensor, Tensor, Sequence[int]], Tensor]
"""Of log-probabilities and mask [rows, T] of some rows of a batch, whose numbers these are; a mean
over these rows."""


def actor_step(
    model: Any,
    optimiser: Optimizer,
    rows: Sequence[Row],
    loss: Loss,
    *,
    micro_batch: int,
    clip: float,
) -> tuple[float, float]:
    """The loss over all rows (prompt, reply) and the norm of its gradient before it was clipped, by
    the policy's own parameters alone; `clip` 0 is none. How rows are cut into micro-batches, of so
    many texts each, changes nothing but rounding."""
    optimiser.zero_grad(set_to_none=True)
    total = 0.0
    texts = in_texts(rows)
    for start in range(0, len(texts), micro_batch):
        part = [place for text in texts[start : start + micro_batch] for place in text]
        log_probs, mask = reply_log_probs(model, [rows[place] for place in part])
        share = loss(log_probs, mask, part) * (len(part) / len(rows))
        share.backward()
        total += float(share.detach())
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip or float("inf"))
    optimiser.step()
    return total, float(norm)


def in_texts(rows: Sequence[Row]) -> list[list[int]]:
    """Numbers of rows, those together whose tokens stand in one text: replies of a conversation
    whose later turns show them as they were said. The first of each is the whole text."""
    whole = [(*prompt, *reply) for prompt, reply in rows]
    lengths = sorted({len(tokens) for tokens in whole})
    found: list[list[int]] = []
    by_prefix: dict[tuple[int, ...], list[int]] = {}
    for place in sorted(range(len(rows)), key=lambda place: (-len(whole[place]), place)):
        tokens = whole[place]
        text = by_prefix.get(tokens)
        if text is None:
            text = []
            found.append(text)
            for length in lengths[: bisect_right(lengths, len(tokens))]:
                by_prefix.setdefault(tokens[:length], text)
        text.append(place)
    return found


def reply_log_probs(model: Any, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
    """Natural-log probabilities [B, T] of the replies' tokens at temperature 1, and the mask that
    is 1 on them. Each text is read once, whichever replies stand in it. Texts are padded behind,
    where no token sees it, so that positions are right and a row's numbers do not depend on those
    beside it. Raises ValueError for an empty prompt."""
    if not all(prompt for prompt, _ in rows):
        raise ValueError("a reply needs a prompt of one token at least")
    device = next(model.parameters()).device
    texts = in_texts(rows)
    width = max(sum(map(len, rows[text[0]])) for text in texts)
    longest = max(len(reply) for _, reply in rows)
    ids = torch.zeros(len(texts), width, dtype=torch.long)
    seen = torch.zeros(len(texts), width, dtype=torch.long)
    tokens = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros(len(rows), longest)
    of = torch.zeros(len(rows), dtype=torch.long)
    for number, text in enumerate(texts):
        prompt, reply = rows[text[0]]
        whole = torch.tensor([*prompt, *reply])
        ids[number, : len(whole)] = whole
        seen[number, : len(whole)] = 1
        for place in text:
            prompt, reply = rows[place]
            of[place] = number
            tokens[place, : len(reply)] = whole[len(prompt) : len(prompt) + len(reply)]
            mask[place, : len(reply)] = 1
    starts = torch.tensor([len(prompt) - 1 for prompt, _ in rows])
    places = (starts[:, None] + torch.arange(longest)).clamp(max=width - 1)
    states = model.base_model(
        input_ids=ids.to(device), attention_mask=seen.to(device), use_cache=False
    ).last_hidden_state
    # Only where a reply's tokens are drawn: logits of a long prompt would take most of the memory.
    chosen = states[of.to(device)[:, None], places.to(device)]
    logits = model.get_output_embeddings()(chosen).float()
    found = torch.log_softmax(logits, dim=-1).gather(2, tokens.to(device).unsqueeze(2))[..., 0]
    return found, mask.to(device)
