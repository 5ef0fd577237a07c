"""Whether both trainers compute the same: steps of critic and policy on the same rows and
replies, the choice of filtered imitation, and the law of replies.

The released code pads prompts behind and counts positions over the padding, clips the gradients of
all networks together, stale ones too, adds up what micro-batches give, and drops the token that
ends a reply. `AS_MEANT` compares without: states of one length, nothing clipped. `AS_RELEASED` puts
these ways around our steps (`ways.py`). Numbers are of float64: in float32 a gradient of rounding
alone becomes, by Adam's first step, one of the learning rate's size.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import nn
from torch.optim import Adam

from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.engine.model import load_tokenizer
from agentc_backends.trainers.online_rl.critic import Critic, Utterances, critic_step, target_copy
from agentc_backends.trainers.online_rl.filtered_bc import best_share
from agentc_backends.trainers.online_rl.learning import actor_step
from agentc_backends.trainers.online_rl.losses import advantage, policy_gradient_loss
from agentc_backends.trainers.online_rl.readers import Text, TextPrefix, load_encoder, whole_text
from agentc_backends.trainers.online_rl.sampling import Decode, DrawRequest, Sampler
from agentc_backends.trainers.online_rl.settings import CriticPhase
from benchmarks.archer_released.released import Released
from benchmarks.archer_released.tiny import WIDTH, Told
from benchmarks.archer_released.ways import jointly_clipped, padded, unseen

ROWS, CRITIC_STEPS = 16, 3
HEADS = {"critic1": "q1", "critic2": "q2", "v_critic1": "v1", "v_critic2": "v2"}


@dataclass(frozen=True, slots=True)
class UpdateWays:
    """`parts` micro-batches of a step, added up; gradients of all networks clipped to `clip`
    together; with `padding`, states of any length, and positions counted over what fills them."""

    parts: int
    clip: float
    padding: bool


AS_MEANT = UpdateWays(parts=1, clip=1e9, padding=False)
AS_RELEASED = UpdateWays(parts=2, clip=1.0, padding=True)


@contextmanager
def in_float64() -> Iterator[None]:
    """New tensors are of float64 within it: the released code makes some of its own."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def compare_updates(
    checkout: Path, policy: Path, encoder: Path, told: list[Told], ways: UpdateWays
) -> Iterator[tuple[str, float]]:
    """Largest differences, by what they are of: after three steps of the critic, one of the policy,
    and one more of the critic, which the gradients of the policy's step are clipped with."""
    theirs = Released(
        checkout, policy, encoder,
        width=WIDTH, rows=ROWS // ways.parts, accumulated=ways.parts, clip=ways.clip,
    )  # fmt: skip
    agent = theirs.agent
    for each in (agent.model, agent.critic, agent.target_critic):
        each.double()
    ours = load_model(policy).double().eval()
    tokenizer = load_tokenizer(str(policy))
    critic = Critic(load_encoder(encoder, tokenizer, "pooler", 512, seed=0)).double()
    _take_heads(critic, agent.critic)
    target = target_copy(critic)
    _take_heads(target, agent.target_critic)
    networks = (ours, critic, target)
    of_critic, of_policy = (
        jointly_clipped(each, networks, ways.clip, ways.parts) for each in (critic, ours)
    )

    def ids(text: str) -> TextPrefix:
        return whole_text(Text(tuple(tokenizer(text)["input_ids"])))

    rows = told if ways.padding else _of_one_length(told, lambda text: len(ids(text).ids))
    rng = random.Random(0)
    said = [one.reply for one in told]

    def next_batch() -> tuple[list[Told], list[str]]:
        batch = [rng.choice(rows) for _ in range(ROWS)]
        replies = [rng.choice(said) for _ in range(ROWS)]
        theirs.draw_these([_row(one) for one in batch], replies)
        return batch, replies

    def step_critic(number: int) -> Iterator[tuple[str, float]]:
        batch, replies = next_batch()
        found = theirs.update(critic_steps=1, actor_steps=0)
        loss, _ = critic_step(
            critic,
            target,
            of_critic,
            Utterances(
                states=[ids(one.state) for one in batch],
                replies=[ids(one.reply) for one in batch],
                rewards=torch.tensor([one.reward for one in batch]),
                following=[None if one.done else ids(one.following) for one in batch],
                to_go=torch.zeros(ROWS),
                drawn=[ids(reply) for reply in replies],
            ),
            CriticPhase(discount=0.95, target_rate=0.1, max_grad_norm=0.0),
        )
        for name in ("q1", "q2", "v1", "v2"):
            difference = float(found[f"{name}.loss"]) - float(getattr(loss, name))
            yield f"loss of {name}, critic step {number}", abs(difference)

    for number in range(CRITIC_STEPS):
        yield from step_critic(number + 1)
    yield "gradients of the critic", _gradients_apart(_heads_of(agent.critic), critic)
    yield "weights of the critic", _apart(_heads_of(agent.critic), critic)
    yield "weights of the slow copy", _apart(_heads_of(agent.target_critic), target)
    batch, replies = next_batch()
    found = theirs.update(critic_steps=0, actor_steps=1)
    states, spoken = [ids(one.state) for one in batch], [ids(reply) for reply in replies]
    with torch.no_grad():
        seen, heard = critic.read([*states, *spoken]).chunk(2)
        better = advantage(critic.q(seen, heard), critic.v(seen))
    filler, part = int(tokenizer.eos_token_id), ROWS // ways.parts
    prompts = [
        prompt
        for start in range(0, ROWS, part)
        for prompt in padded([one.ids for one in states[start : start + part]], filler)
    ]
    with unseen(ours.base_model, filler):
        value, _ = actor_step(
            ours,
            of_policy,
            [(prompt, reply.ids) for prompt, reply in zip(prompts, spoken, strict=True)],
            lambda log_probs, mask, part: policy_gradient_loss(log_probs, mask, better[[*part]]),
            micro_batch=ROWS,
            clip=0.0,
        )
    other = dict(agent.model.named_parameters())
    yield "mean of the advantages", abs(float(found["advantages.mean"]) - float(better.mean()))
    yield "loss of the policy", abs(float(found["pg.loss"]) - value)
    yield "gradients of the policy", _gradients_apart(other, ours)
    yield "weights of the policy", _apart(other, ours)
    yield from step_critic(CRITIC_STEPS + 1)
    yield "weights of the critic, after that", _apart(_heads_of(agent.critic), critic)
    yield "gradients of the policy, clipped again", _gradients_apart(other, ours)


def choices_differ(draws: int) -> int:
    """Of so many sets of returns, how many where the best tenth is another than
    `numpy.quantile(returns, 0.9)` and all that reach it, which is what the released code takes."""
    rng = random.Random(0)
    differing = 0
    for _ in range(draws):
        returns = [float(rng.randint(-20, 0)) for _ in range(rng.randint(1, 200))]
        cutoff = numpy.quantile(returns, 1 - 0.1)
        wanted = [number for number, one in enumerate(returns) if one >= cutoff]
        differing += [*best_share(returns, 0.1)[1]] != wanted
    return differing


def replies_alike(
    checkout: Path, policy: Path, encoder: Path, draws: int
) -> tuple[Mapping[str, tuple[int, int]], float]:
    """How often each reply was drawn by the released agent and by our sampler from a policy of
    three words, and the p of a chi-square test that both have one law."""
    theirs = Released(
        checkout, policy, encoder, width=WIDTH, rows=8, accumulated=1, clip=1.0, max_new_tokens=4
    )
    ours = load_model(policy).eval()
    tokenizer = load_tokenizer(str(policy))
    state = "Questions:\nIs it heavy? "
    _teach(ours, tokenizer, state, {"yes": 5, "no": 3, "perhaps": 2})
    theirs.agent.model.load_state_dict(ours.state_dict())
    torch.manual_seed(0)
    released: Counter[str] = Counter()
    for _ in range(draws // 500):
        released.update(theirs.agent.get_action([state] * 500))
    newline = frozenset(tokenizer("\n")["input_ids"])
    prompt = tokenizer(state)["input_ids"]
    asked = [DrawRequest(prompt, (number, 0)) for number in range(draws // 500 * 500)]
    mine: Counter[str] = Counter()
    for one in Sampler(ours).draw(asked, Decode(max_tokens=4, ends=newline)):
        mine[tokenizer.decode([each for each in one.ids if each not in newline])] += 1
    often = [word for word, count in (released + mine).most_common() if count >= 20]
    table = {word: (released[word], mine[word]) for word in often}
    rest = (
        sum(released.values()) - sum(each for each, _ in table.values()),
        sum(mine.values()) - sum(each for _, each in table.values()),
    )
    if sum(rest) >= 20:
        table["(others)"] = rest
    return table, _same_law(numpy.array([*table.values()], dtype=float))


def _same_law(counts: Any) -> float:
    """The p of a chi-square test of homogeneity, of counts [replies, 2]."""
    expected = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True) / counts.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    half = torch.tensor([(len(counts) - 1) / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))


def _teach(model: Any, tokenizer: Any, state: str, words: Mapping[str, int]) -> None:
    prompt = tokenizer(state)["input_ids"]
    rows = [(prompt, tokenizer(word + "\n")["input_ids"]) for word in words]
    weights = torch.tensor([float(each) for each in words.values()])
    optimiser = Adam(model.parameters(), lr=1e-3)
    for _ in range(80):
        actor_step(
            model,
            optimiser,
            rows,
            lambda log_probs, mask, part: (
                -((log_probs * mask).sum(dim=1) * weights[[*part]] / weights.sum()).sum()
            ),
            micro_batch=8,
            clip=1.0,
        )


def _of_one_length(told: list[Told], length: Any) -> list[Told]:
    """Those whose states have the most common number of tokens."""
    lengths = Counter(length(one.state) for one in told)
    ((most, _),) = lengths.most_common(1)
    return [one for one in told if length(one.state) == most]


def _row(one: Told) -> dict[str, Any]:
    return {
        "observation": one.state, "action": one.reply, "reward": one.reward,
        "next_observation": one.following, "done": float(one.done), "mc_return": 0.0,
    }  # fmt: skip


def _heads_of(released: Any) -> dict[str, torch.Tensor]:
    """Its weights under our names."""
    found = {}
    for name, each in released.named_parameters():
        head, _, rest = name.partition(".")
        found[f"reader.encoder.{rest}" if head == "base_lm" else f"{HEADS[head]}.{rest}"] = each
    return found


def _take_heads(critic: Critic, released: Any) -> None:
    given = _heads_of(released)
    with torch.no_grad():
        for name, each in critic.named_parameters():
            each.copy_(given[name])


def _gradients_apart(released: Mapping[str, torch.Tensor], model: nn.Module) -> float:
    """Of the gradients of their last steps."""
    apart = []
    for name, each in model.named_parameters():
        other = released[name].grad
        if each.grad is not None and other is not None:
            apart.append(float((other - each.grad).abs().max()))
    return max(apart)


def _apart(released: Mapping[str, torch.Tensor], model: nn.Module) -> float:
    with torch.no_grad():
        return max(
            float((released[name] - each).abs().max()) for name, each in model.named_parameters()
        )
