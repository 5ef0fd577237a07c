"""Replies whose prompts go on one another, laid out as few texts: each prompt is read once.

A reply that the conversation shows stands in its text; one that it does not, as a fresh reply to an
earlier turn, is a branch behind it, which sees its own prompt and itself alone. What a body makes
of each token is what it makes of that reply alone, up to rounding. Neighbour: `actor_step.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn

Row: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""A prompt and a reply, in tokens."""


@dataclass(frozen=True, slots=True)
class LaidText:
    """Tokens and their positions [T]; `branches` are (first, end, prompt's length) of what stands
    behind the conversation; `states` has for each row where what stands before each token of its
    reply is read."""

    ids: list[int]
    positions: list[int]
    branches: list[tuple[int, int, int]]
    states: list[list[int]]


def in_texts(rows: Sequence[Row]) -> list[list[int]]:
    """Numbers of rows, those together whose prompts stand in one text, which is the first one's
    prompt and reply."""
    prompts = [tuple(prompt) for prompt, _ in rows]
    whole = [(*prompt, *reply) for prompt, (_, reply) in zip(prompts, rows, strict=True)]
    lengths = sorted({len(prompt) for prompt in prompts})
    found: list[list[int]] = []
    by_prefix: dict[tuple[int, ...], list[int]] = {}
    # A longest prompt first, so that others stand in it.
    order = sorted(range(len(rows)), key=lambda n: (-len(prompts[n]), -len(whole[n]), n))
    for place in order:
        text = by_prefix.get(prompts[place])
        if text is None:
            text = []
            found.append(text)
            for length in lengths[: bisect_right(lengths, len(whole[place]))]:
                by_prefix.setdefault(whole[place][:length], text)
        text.append(place)
    return found


def lay_out(rows: Sequence[Row]) -> LaidText:
    """Of rows of one text, in their order there. The last token of a branch is never read on."""
    ids = [*rows[0][0], *rows[0][1]]
    length = len(ids)
    positions, branches, states = [*range(length)], [], []
    known: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for prompt, reply in rows:
        at = len(prompt)
        if ids[at:length][: len(reply)] == [*reply]:
            states.append([*range(at - 1, at - 1 + len(reply))])
            continue
        name = (at, tuple(reply))
        if name not in known:
            first, end = len(ids), len(ids) + len(reply) - 1
            ids += reply[:-1]
            positions += range(at, at + len(reply) - 1)
            if end > first:
                branches.append((first, end, at))
            known[name] = [at - 1, *range(first, end)]
        states.append(known[name])
    return LaidText(ids, positions, branches, states)


def reply_states(body: nn.Module, rows: Sequence[Row]) -> tuple[Tensor, Tensor, Tensor]:
    """What a causal body makes [B, T, H] of all that stands before each token of the replies, these
    tokens [B, T], and the mask that is 1 on them. Texts are padded behind, where no token sees it,
    so that a row's numbers do not depend on those beside it. Raises ValueError for an empty
    prompt."""
    if not all(prompt for prompt, _ in rows):
        raise ValueError("a reply needs a prompt of one token at least")
    device = next(body.parameters()).device
    groups = in_texts(rows)
    laid = [lay_out([rows[place] for place in group]) for group in groups]
    longest = max(len(reply) for _, reply in rows)
    tokens = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros(len(rows), longest)
    of = torch.zeros(len(rows), dtype=torch.long)
    places = torch.zeros(len(rows), longest, dtype=torch.long)
    for number, (group, text) in enumerate(zip(groups, laid, strict=True)):
        for place, states in zip(group, text.states, strict=True):
            reply = rows[place][1]
            of[place] = number
            tokens[place, : len(reply)] = torch.tensor([*reply])
            mask[place, : len(reply)] = 1
            places[place, : len(reply)] = torch.tensor(states)
    found: Tensor = body(
        **{name: each.to(device) for name, each in _asked(body, laid).items()}, use_cache=False
    ).last_hidden_state
    # Only where a reply's tokens are drawn: logits of a long prompt would take most of the memory.
    chosen = found[of.to(device)[:, None], places.to(device)]
    return chosen, tokens.to(device), mask.to(device)


def _asked(body: nn.Module, laid: Sequence[LaidText]) -> dict[str, Tensor]:
    width = max(len(text.ids) for text in laid)
    ids = torch.zeros(len(laid), width, dtype=torch.long)
    for number, text in enumerate(laid):
        ids[number, : len(text.ids)] = torch.tensor(text.ids)
    if not any(text.branches for text in laid):
        seen = torch.zeros_like(ids)
        for number, text in enumerate(laid):
            seen[number, : len(text.ids)] = 1
        return {"input_ids": ids, "attention_mask": seen}
    positions = torch.zeros_like(ids)
    sees = torch.ones(width, width, dtype=torch.bool).tril().repeat(len(laid), 1, 1)
    for number, text in enumerate(laid):
        positions[number, : len(text.ids)] = torch.tensor(text.positions)
        for first, end, prompt in text.branches:
            sees[number, first:end, prompt:first] = False
    # Added to scores, which every kind of attention takes.
    dtype = next(body.parameters()).dtype
    added = torch.zeros(sees.shape, dtype=dtype).masked_fill_(~sees, torch.finfo(dtype).min)
    return {"input_ids": ids, "position_ids": positions, "attention_mask": added[:, None]}
