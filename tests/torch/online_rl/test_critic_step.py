"""The real critic: an encoder, four heads, the slow copy, on data of another policy."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch
from tests.support.corridor_values import DISCOUNT
from tests.torch.online_rl.corridor import EXACT_Q, EXACT_V, EXPECTILE_V, POLICY, outcomes
from transformers import LlamaConfig, LlamaModel, RobertaConfig, RobertaModel

from agentc.kinds.reinforcement import ValueTarget
from agentc_backends.environments.corridor.rules import ACTIONS, ROOMS
from agentc_backends.trainers.online_rl.critic import (
    Critic,
    Utterances,
    critic_losses,
    critic_step,
    target_copy,
)
from agentc_backends.trainers.online_rl.readers import CausalReader, EncoderReader, Text, TextPrefix
from agentc_backends.trainers.online_rl.settings import CriticPhase


def whole(text: str) -> TextPrefix:
    """Letters as tokens, between a first and a last one."""
    ids = (0, *(3 + ord(letter) - 32 for letter in text), 2)
    return TextPrefix(Text(ids), len(ids))


STATES, REPLIES = [whole(text) for text in ROOMS], [whole(text) for text in ACTIONS]


def encoder() -> EncoderReader:
    config = RobertaConfig(
        vocab_size=100, hidden_size=64, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=128, max_position_embeddings=64,
    )  # fmt: skip
    return EncoderReader(RobertaModel(config).eval(), 64, "pooler", lambda ids: ids)


def causal() -> CausalReader:
    config = LlamaConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=128,
    )  # fmt: skip
    return CausalReader(LlamaModel(config).eval(), 32)


def drawn(rng: random.Random, number: int) -> Utterances:
    """Rooms and actions evenly, replies of the policy beside them."""
    states, replies, rewards, following, fresh = [], [], [], [], []
    for _ in range(number):
        room, action = rng.randrange(4), rng.randrange(3)
        options = outcomes(room, action)
        (outcome,) = rng.choices(options, [each.chance for each in options])
        states.append(STATES[room])
        replies.append(REPLIES[action])
        rewards.append(outcome.reward)
        following.append(None if outcome.following is None else STATES[outcome.following])
        fresh.append(REPLIES[rng.choices(range(3), POLICY)[0]])
    worth = torch.tensor(rewards)
    return Utterances(
        states=states, replies=replies, rewards=worth, following=following, to_go=worth, drawn=fresh
    )


def train(seed: int, steps: int, value_target: ValueTarget) -> Critic:
    torch.manual_seed(seed)
    critic = Critic(encoder())
    target = target_copy(critic)
    optimiser = torch.optim.Adam(critic.parameters(), lr=1e-3)
    settings = CriticPhase(
        discount=DISCOUNT,
        target_rate=0.1,
        value_target=value_target,
        expectile=0.9,
        max_grad_norm=10,
    )
    rng = random.Random(seed)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 1e-3 * min(1.0, max(0.02, 2 * (1 - step / steps)))
        critic_step(critic, target, optimiser, drawn(rng, 256), settings)
    return critic


@torch.no_grad()
def values(critic: Critic) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """V [rooms] and Q [rooms, actions] of each of the two heads."""
    rooms, actions = critic.read(STATES), critic.read(REPLIES)
    q, v = critic.q(rooms.repeat_interleave(3, 0), actions.repeat(4, 1)), critic.v(rooms)
    return [(v.first, q.first.reshape(4, 3)), (v.second, q.second.reshape(4, 3))]


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_comes_to_the_exact_values(seed: int) -> None:
    exact_v, exact_q = torch.tensor(EXACT_V), torch.tensor(EXACT_Q)
    for v, q in values(train(seed, 1800, "policy")):
        assert (v - exact_v).abs().max() < 0.25
        assert (q - exact_q).abs().max() < 0.25
        assert torch.equal(q > v[:, None], exact_q > exact_v[:, None])


def test_it_is_near_them_soon() -> None:
    """A sixth of the steps: each error is far below the spread of the values (9.6)."""
    for v, _ in values(train(0, 300, "policy")):
        assert (v - torch.tensor(EXACT_V)).abs().max() < 1.5


@pytest.mark.long
def test_an_expectile_of_the_datas_actions() -> None:
    for v, _ in values(train(0, 1800, "expectile")):
        assert (v - torch.tensor(EXPECTILE_V)).abs().max() < 0.3


def test_a_causal_body_reads_each_prefix_as_if_nothing_followed() -> None:
    torch.manual_seed(0)
    reader = causal()
    long, short = Text(tuple(range(5, 45))), Text(tuple(range(50, 60)))
    prefixes = [
        TextPrefix(long, 7),
        TextPrefix(short, 10),
        TextPrefix(long, 40),
        TextPrefix(long, 21),
    ]
    together = reader(prefixes)
    for one, found in zip(prefixes, together, strict=True):
        (alone,) = reader([TextPrefix(Text(one.ids), one.length)])
        torch.testing.assert_close(found, alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pool", ["pooler", "first", "mean", "last"])
def test_an_encoder_reads_a_text_alike_in_any_company(pool: str) -> None:
    torch.manual_seed(0)
    reader = EncoderReader(
        encoder().encoder,
        64,
        pool,  # type: ignore[arg-type]
        translate=lambda ids: ids[-20:],
    )
    texts = [whole(text) for text in ("look", "a dark kitchen", "look", "old cellar stairs, down")]
    found = reader(texts)
    torch.testing.assert_close(found[0], found[2])
    for one, row in zip(texts, found, strict=True):
        torch.testing.assert_close(row, reader([one])[0], rtol=1e-5, atol=1e-5)
    cut = Text(texts[3].ids[-20:])
    torch.testing.assert_close(found[3], reader([TextPrefix(cut, 20)])[0], rtol=1e-5, atol=1e-5)


def test_a_step_moves_the_critic_and_a_tenth_of_it_the_copy() -> None:
    torch.manual_seed(0)
    critic = Critic(causal(), hidden=16, start=-8.0)
    target = target_copy(critic)
    before = [each.clone() for each in target.parameters()]
    batch = drawn(random.Random(0), 8)
    said = critic.v(critic.read(batch.states)).first.detach()
    torch.testing.assert_close(said, torch.full_like(said, -8.0), rtol=0, atol=1)
    settings = CriticPhase(discount=0.9, target_rate=0.1, max_grad_norm=1e-3)
    optimiser = torch.optim.SGD(critic.parameters(), lr=1.0)
    _, norm = critic_step(critic, target, optimiser, batch, settings)
    assert norm > 1e-3
    moved = [new - old for new, old in zip(critic.parameters(), before, strict=True)]
    total = torch.sqrt(sum(((each.detach() ** 2).sum() for each in moved), torch.zeros(())))
    assert float(total) == pytest.approx(1e-3, rel=1e-2)
    for slow, old, new in zip(target.parameters(), before, critic.parameters(), strict=True):
        torch.testing.assert_close(slow, old + 0.1 * (new - old))
        assert slow.grad is None


def test_only_the_policys_value_target_needs_replies_of_it() -> None:
    torch.manual_seed(0)
    critic = Critic(causal())
    batch = drawn(random.Random(0), 4)
    bare = Utterances(
        states=batch.states, replies=batch.replies, rewards=batch.rewards,
        following=batch.following, to_go=batch.to_go,
    )  # fmt: skip
    kinds: Sequence[ValueTarget] = ("data", "return", "expectile")
    for kind in kinds:
        settings = CriticPhase(discount=0.9, target_rate=0.1, value_target=kind)
        assert critic_losses(critic, target_copy(critic), bare, settings).total > 0
    settings = CriticPhase(discount=0.9, target_rate=0.1)
    with pytest.raises(ValueError, match="needs replies of the policy for each state"):
        critic_losses(critic, target_copy(critic), bare, settings)
