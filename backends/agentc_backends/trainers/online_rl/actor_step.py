"""One gradient step on utterances: their log-probabilities, a loss, clipping.

Neighbours: `losses.py` has the losses, `sampling.py` draws the utterances; `token_values.py` reads
the same places of a body.
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
    is 1 on them. Raises ValueError for an empty prompt."""
    states, tokens, mask = reply_states(model.base_model, rows)
    return _of_tokens(_log_chances(model, states), tokens), mask


def reply_chances(model: Any, rows: Sequence[Row]) -> tuple[Tensor, Tensor, Tensor]:
    """The same two, and the entropy [B, T] in nats of what each token is drawn from. It needs the
    memory of all logits twice."""
    states, tokens, mask = reply_states(model.base_model, rows)
    chances = _log_chances(model, states)
    return _of_tokens(chances, tokens), mask, -(chances.exp() * chances).sum(dim=2)


def reply_states(body: nn.Module, rows: Sequence[Row]) -> tuple[Tensor, Tensor, Tensor]:
    """What a causal body makes [B, T, H] of all that stands before each token of the replies, these
    tokens [B, T], and the mask that is 1 on them. Each text is read once, whichever replies stand
    in it. Texts are padded behind, where no token sees it, so that positions are right and a row's
    numbers do not depend on those beside it. Raises ValueError for an empty prompt."""
    if not all(prompt for prompt, _ in rows):
        raise ValueError("a reply needs a prompt of one token at least")
    device = next(body.parameters()).device
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
    found: Tensor = body(
        input_ids=ids.to(device), attention_mask=seen.to(device), use_cache=False
    ).last_hidden_state
    # Only where a reply's tokens are drawn: logits of a long prompt would take most of the memory.
    chosen = found[of.to(device)[:, None], places.to(device)]
    return chosen, tokens.to(device), mask.to(device)


def _log_chances(model: Any, states: Tensor) -> Tensor:
    """[B, T, V]"""
    return torch.log_softmax(model.get_output_embeddings()(states).float(), dim=-1)


def _of_tokens(chances: Tensor, tokens: Tensor) -> Tensor:
    """[B, T]"""
    return chances.gather(2, tokens.unsqueeze(2))[..., 0]
