"""Learner: what the loop asks of an algorithm. `archer.py`, `filtered_bc.py` and `ppo.py` are such
ones."""

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
"""The phase in which the policy learns; none of it in the iterations of warm-up."""
Numbers: TypeAlias = dict[str, float]
"""Of a phase, by their names; they stand in the iteration's row of the curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """What every algorithm learns with. `policy` is the module that `sampler` draws from; `seed`
    is the run's; so many rows go through a model at once. `encoder` reads for a critic, where the
    run has one of its own."""

    policy: Any
    tokenizer: Any
    sampler: Sampler
    decode: Decode
    seed: int
    micro_batch: int
    encoder: Reader | None = None


class Learner(Protocol):
    """`phases` of an iteration, in order; that of the policy is `actor`. What a phase does is a
    function of the run's seed, the iteration, the buffer and the learner's state, which is
    `modules` and `optimisers` by name."""

    @property
    def phases(self) -> Sequence[str]: ...

    @property
    def modules(self) -> Mapping[str, nn.Module]: ...

    @property
    def optimisers(self) -> Mapping[str, Optimizer]: ...

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of a phase."""
        ...


Row: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""A prompt and a reply, in tokens."""


@dataclass(frozen=True, slots=True)
class SharedText:
    """Tokens and their positions [T]; `branches` are (first, end, prompt's length) of what stands
    behind the conversation; `states` has for each row where what stands before each token of its
    reply is read."""

    ids: list[int]
    positions: list[int]
    branches: list[tuple[int, int, int]]
    states: list[list[int]]


def group_by_text(rows: Sequence[Row]) -> list[list[int]]:
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


def shared_text(rows: Sequence[Row]) -> SharedText:
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
    return SharedText(ids, positions, branches, states)


def reply_states(body: nn.Module, rows: Sequence[Row]) -> tuple[Tensor, Tensor, Tensor]:
    """What a causal body makes [B, T, H] of all that stands before each token of the replies, these
    tokens [B, T], and the mask that is 1 on them. Texts are padded behind, where no token sees it,
    so that a row's numbers do not depend on those beside it. Raises ValueError for an empty
    prompt."""
    if not all(prompt for prompt, _ in rows):
        raise ValueError("a reply needs a prompt of one token at least")
    device = next(body.parameters()).device
    groups = group_by_text(rows)
    laid = [shared_text([rows[place] for place in group]) for group in groups]
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
        **{name: each.to(device) for name, each in _model_inputs(body, laid).items()},
        use_cache=False,
    ).last_hidden_state
    # Only where a reply's tokens are drawn: logits of a long prompt would take most of the memory.
    chosen = found[of.to(device)[:, None], places.to(device)]
    return chosen, tokens.to(device), mask.to(device)


def _model_inputs(body: nn.Module, laid: Sequence[SharedText]) -> dict[str, Tensor]:
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
    texts = group_by_text(rows)
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


def reply_log_probs_and_entropy(model: Any, rows: Sequence[Row]) -> tuple[Tensor, Tensor, Tensor]:
    """The same two, and the entropy [B, T] in nats of what each token is drawn from. It needs the
    memory of all logits twice."""
    states, tokens, mask = reply_states(model.base_model, rows)
    chances = _log_chances(model, states)
    return _of_tokens(chances, tokens), mask, -(chances.exp() * chances).sum(dim=2)


def per_row(
    read: Callable[[Sequence[Row]], tuple[Tensor, Tensor]], rows: Sequence[Row], micro_batch: int
) -> list[Tensor]:
    """For each row [tokens of its reply], without gradient, in pieces of so many texts."""
    found: dict[int, Tensor] = {}
    texts = group_by_text(rows)
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
