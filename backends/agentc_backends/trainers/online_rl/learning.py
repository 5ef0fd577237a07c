"""The interface of an RL algorithm (`Learner`), and what the algorithms share: log-probabilities of
replies and the gradient step.

A batch is rows (prompt, reply). Rows whose prompts extend one another are packed into few texts, so
that each prompt is computed once. A reply that the conversation contains is part of its text; any
other one, such as a fresh reply to an earlier turn, is a branch at the text's end that attends to
its own prompt and itself. Each token's features are those of its row alone, up to rounding.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from agentc_backends.trainers.online_rl.readers import Reader
from agentc_backends.trainers.online_rl.replay import ReplayBuffer
from agentc_backends.trainers.online_rl.sampling import Decode, Sampler

ACTOR = "actor"
"""The phase in which the policy learns; skipped in the iterations of warm-up."""
Numbers: TypeAlias = dict[str, float]
"""Metrics of a phase by name; they are in the iteration's row of the curve."""
Row: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""A prompt and a reply, in tokens."""
Loss: TypeAlias = Callable[[Tensor, Tensor, Sequence[int]], Tensor]
"""(log-probabilities, mask, numbers) of some rows of a batch, the first two [rows, T] -> the mean
over these rows."""
RowsLoss: TypeAlias = Callable[[Sequence[Row], Sequence[int]], Tensor]
"""(rows, numbers) of some rows of a batch -> their share of the loss of all rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """The inputs of every algorithm. `sampler` draws from `policy`; `seed` is the run's;
    `micro_batch` is the number of rows or texts in a forward pass; `encoder` is what a critic reads
    with, where the run has one."""

    policy: Any
    tokenizer: Any
    sampler: Sampler
    decode: Decode
    seed: int
    micro_batch: int
    encoder: Reader | None = None


class Learner(Protocol):
    """An algorithm. `phases` are those of an iteration, in order; the policy's is `actor`. A phase
    is a function of the run's seed, the iteration, the buffer, and the learner's state, which is
    `modules` and `optimisers`, by name."""

    @property
    def phases(self) -> Sequence[str]: ...

    @property
    def modules(self) -> Mapping[str, nn.Module]: ...

    @property
    def optimisers(self) -> Mapping[str, Optimizer]: ...

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of a phase."""
        ...


def actor_step(
    model: Any,
    optimiser: Optimizer,
    rows: Sequence[Row],
    loss: Loss,
    *,
    micro_batch: int,
    clip: float,
) -> tuple[float, float]:
    """`gradient_step` of the policy for a loss that needs the log-probabilities of the replies only
    and is a mean over rows."""

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
    """One step of the optimiser. Returns the loss over all rows and the norm of the gradient of the
    model's own parameters before clipping; `clip` 0 is no clipping. Apart from rounding, the result
    does not depend on `micro_batch`, the number of texts in a micro-batch."""
    optimiser.zero_grad(set_to_none=True)
    total = 0.0
    texts = group_by_text(rows)
    for start in range(0, len(texts), micro_batch):
        part = [place for text in texts[start : start + micro_batch] for place in text]
        share = loss([rows[place] for place in part], part)
        share.backward()
        total += float(share.detach())
    norm = nn.utils.clip_grad_norm_(model.parameters(), clip or float("inf"))
    optimiser.step()
    return total, float(norm)


def per_row(
    read: Callable[[Sequence[Row]], tuple[Tensor, Tensor]], rows: Sequence[Row], micro_batch: int
) -> list[Tensor]:
    """What `read` computes of each row, [tokens of its reply], without gradient, from micro-batches
    of `micro_batch` texts."""
    values: dict[int, Tensor] = {}
    texts = group_by_text(rows)
    for start in range(0, len(texts), micro_batch):
        part = [place for text in texts[start : start + micro_batch] for place in text]
        with torch.no_grad():
            padded, _ = read([rows[place] for place in part])
        for place, row in zip(part, padded, strict=True):
            values[place] = row[: len(rows[place][1])]
    return [values[place] for place in range(len(rows))]


def reply_log_probs(model: Any, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
    """Natural-log probabilities [B, T] of the replies' tokens at temperature 1, and their mask, 1
    on tokens. Raises ValueError for an empty prompt."""
    states, tokens, mask = reply_states(model.base_model, rows)
    return _at_tokens(_log_softmax(model, states), tokens), mask


def reply_log_probs_and_entropy(model: Any, rows: Sequence[Row]) -> tuple[Tensor, Tensor, Tensor]:
    """The same two, and the entropy [B, T] in nats of each token's distribution. It needs the
    memory of all logits twice."""
    states, tokens, mask = reply_states(model.base_model, rows)
    log_probs = _log_softmax(model, states)
    return _at_tokens(log_probs, tokens), mask, -(log_probs.exp() * log_probs).sum(dim=2)


def _log_softmax(model: Any, states: Tensor) -> Tensor:
    """[B, T, V], in float32 at least."""
    logits: Tensor = model.get_output_embeddings()(states)
    return torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)), dim=-1)


def _at_tokens(log_probs: Tensor, tokens: Tensor) -> Tensor:
    """[B, T]"""
    return log_probs.gather(2, tokens.unsqueeze(2))[..., 0]


def reply_states(body: nn.Module, rows: Sequence[Row]) -> tuple[Tensor, Tensor, Tensor]:
    """Features [B, T, H] of a causal body at the position before each token of the replies, these
    tokens [B, T], and their mask. Texts are padded on the right, where no token attends to it, so
    that a row's numbers do not depend on the other rows. Raises ValueError for an empty prompt."""
    if not all(prompt for prompt, _ in rows):
        raise ValueError("a reply needs a prompt of one token at least")
    device = next(body.parameters()).device
    groups = group_by_text(rows)
    texts = [shared_text([rows[place] for place in group]) for group in groups]
    longest = max(len(reply) for _, reply in rows)
    tokens = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros(len(rows), longest)
    text_of = torch.zeros(len(rows), dtype=torch.long)
    places = torch.zeros(len(rows), longest, dtype=torch.long)
    for number, (group, text) in enumerate(zip(groups, texts, strict=True)):
        for place, states in zip(group, text.states, strict=True):
            reply = rows[place][1]
            text_of[place] = number
            tokens[place, : len(reply)] = torch.tensor([*reply])
            mask[place, : len(reply)] = 1
            places[place, : len(reply)] = torch.tensor(states)
    inputs = {name: tensor.to(device) for name, tensor in _model_inputs(body, texts).items()}
    hidden: Tensor = body(**inputs, use_cache=False).last_hidden_state
    # Only where a reply's tokens are drawn: logits of a long prompt would take most of the memory.
    chosen = hidden[text_of.to(device)[:, None], places.to(device)]
    return chosen, tokens.to(device), mask.to(device)


@dataclass(frozen=True, slots=True)
class SharedText:
    """Tokens and their positions [T]. `branches` are (first, end, prompt's length) of the replies
    at the text's end; `states` are, for each row, the places whose features predict the tokens of
    its reply."""

    ids: list[int]
    positions: list[int]
    branches: list[tuple[int, int, int]]
    states: list[list[int]]


def group_by_text(rows: Sequence[Row]) -> list[list[int]]:
    """The numbers of the rows in groups. The prompts of a group are prefixes of one text, the
    prompt and reply of its first row."""
    prompts = [tuple(prompt) for prompt, _ in rows]
    texts = [(*prompt, *reply) for prompt, (_, reply) in zip(prompts, rows, strict=True)]
    lengths = sorted({len(prompt) for prompt in prompts})
    groups: list[list[int]] = []
    by_prefix: dict[tuple[int, ...], list[int]] = {}
    # Longest prompts first, so that others are prefixes of them.
    order = sorted(range(len(rows)), key=lambda n: (-len(prompts[n]), -len(texts[n]), n))
    for place in order:
        group = by_prefix.get(prompts[place])
        if group is None:
            group = []
            groups.append(group)
            for length in lengths[: bisect_right(lengths, len(texts[place]))]:
                by_prefix.setdefault(texts[place][:length], group)
        group.append(place)
    return groups


def shared_text(rows: Sequence[Row]) -> SharedText:
    """The text of a group's rows, in their order there. The last token of a branch predicts
    nothing, so it is left out."""
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
    return SharedText(ids, positions, branches, states)


def _model_inputs(body: nn.Module, texts: Sequence[SharedText]) -> dict[str, Tensor]:
    width = max(len(text.ids) for text in texts)
    ids = torch.zeros(len(texts), width, dtype=torch.long)
    for number, text in enumerate(texts):
        ids[number, : len(text.ids)] = torch.tensor(text.ids)
    if not any(text.branches for text in texts):
        present = torch.zeros_like(ids)
        for number, text in enumerate(texts):
            present[number, : len(text.ids)] = 1
        return {"input_ids": ids, "attention_mask": present}
    positions = torch.zeros_like(ids)
    attends = torch.ones(width, width, dtype=torch.bool).tril().repeat(len(texts), 1, 1)
    for number, text in enumerate(texts):
        positions[number, : len(text.ids)] = torch.tensor(text.positions)
        for first, end, prompt in text.branches:
            attends[number, first:end, prompt:first] = False
    # Added to the scores, which every implementation of attention supports.
    dtype = next(body.parameters()).dtype
    bias = torch.zeros(attends.shape, dtype=dtype).masked_fill_(~attends, torch.finfo(dtype).min)
    return {"input_ids": ids, "position_ids": positions, "attention_mask": bias[:, None]}
