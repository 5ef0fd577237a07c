"""PPO's learner on a small model: what each token is credited with, what a step does, and that
nothing but rounding depends on how rows are cut."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from benchmarks.archer_corridor import learn
from transformers import LlamaConfig, LlamaForCausalLM

from agentc.kinds.reinforcement import ActorSteps
from agentc_backends.trainers.online_rl.learning import (
    ACTOR,
    Learning,
    reply_log_probs,
    reply_log_probs_and_entropy,
)
from agentc_backends.trainers.online_rl.ppo import (
    PpoLearner,
    TokenValues,
    minibatches,
    token_advantages,
)
from agentc_backends.trainers.online_rl.readers import Text, TextPrefix
from agentc_backends.trainers.online_rl.replay import Episode, EpisodeTurn, ReplayBuffer
from agentc_backends.trainers.online_rl.sampling import Decode, Sampler
from agentc_backends.trainers.online_rl.settings import CriticPhase, PpoRules

CRITIC = "critic"
VALUES = CriticPhase(lr=1e-3, batch=4, hidden=None, start=-3.0, max_grad_norm=1.0, discount=0.9)
POLICY = ActorSteps(lr=1e-3, batch=4, max_grad_norm=1.0)
RULES = PpoRules(
    clip=0.2, value_clip=None, gae_lambda=0.95, epochs=3, entropy_coef=0.0, normalise=True,
    by="utterances",
)  # fmt: skip


def small_policy() -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=64,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def conversation(first: int, replies: list[tuple[int, ...]], rewards: list[float]) -> Episode:
    """Each turn shows all before it and one token more."""
    ids: tuple[int, ...] = (first,)
    turns = []
    for reply, reward in zip(replies, rewards, strict=True):
        turns.append((ids, reply, reward))
        ids = (*ids, *reply, 30 + first)
    text = Text(ids)
    return Episode(
        tuple(
            EpisodeTurn(TextPrefix(text, len(at)), Text(reply), each) for at, reply, each in turns
        )
    )


EPISODES = [
    conversation(1, [(5, 6, 0), (7, 0), (5, 0)], [-1, -1, 4]),
    conversation(2, [(6, 0), (7, 8, 9, 0)], [-1, -3]),
    conversation(3, [(5, 8, 0)], [2]),
    conversation(4, [(9, 0), (5, 5, 0), (6, 7, 0)], [-1, 0, 1]),
]


def learner(
    policy: Any,
    actor: ActorSteps = POLICY,
    rules: PpoRules = RULES,
    values: CriticPhase = VALUES,
    micro_batch: int = 64,
) -> PpoLearner:
    decode = Decode(max_tokens=4, ends=frozenset({0}))
    learning = Learning(
        policy=policy, tokenizer=None, sampler=Sampler(policy), decode=decode, seed=1,
        micro_batch=micro_batch,
    )  # fmt: skip
    return PpoLearner(learning, values, actor, rules)


def buffer_of(*played: Episode) -> ReplayBuffer:
    buffer = ReplayBuffer(None, 0.9)
    buffer.add(played)
    return buffer


def near(found: torch.Tensor, expected: object) -> None:
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=1e-6)


def test_a_reward_comes_with_the_last_token_and_the_discount_between_turns() -> None:
    """Values all 0 and lambda 1: what is left is the discounted return of the turns, alike for all
    tokens of a reply."""
    played = conversation(1, [(5, 6, 0), (7, 0)], [-1, 10])
    nothing = [torch.zeros(3), torch.zeros(2)]
    first, second = token_advantages(played, nothing, 0.9, 1.0)
    near(first, [8.0, 8.0, 8.0])
    near(second, [10.0, 10.0])
    first, second = token_advantages(played, nothing, 0.9, 1.0, after=-20.0)
    near(second, [-8.0, -8.0])
    near(first, [-8.2, -8.2, -8.2])


def test_surprises_are_handed_back_from_token_to_token() -> None:
    """By hand: surprises .5, 1, -.6 | 3, -2 of values 1, 1.5, 2.5 | 1, 4."""
    played = conversation(1, [(5, 6, 0), (7, 0)], [1, 2])
    values = [torch.tensor([1.0, 1.5, 2.5]), torch.tensor([1.0, 4.0])]
    first, second = token_advantages(played, values, 0.9, 0.5)
    near(second, [2.0, -2.0])
    near(first, [1.075, 1.15, 0.3])


def test_an_episode_that_was_cut_goes_on_in_value() -> None:
    """With lambda 1 and no discount every advantage is larger by the value of what follows."""
    whole = EPISODES[3]
    cut = replace(whole, state_after=TextPrefix(Text((4, 9, 0, 34, 11)), 5))
    rules, values = replace(RULES, gae_lambda=1.0), replace(VALUES, discount=1.0)
    means, following = [], 0.0
    for one in (whole, cut):
        ppo = learner(small_policy(), rules=rules, values=values)
        with torch.no_grad():
            following = float(ppo.critic([((4, 9, 0, 34, 11), (0,))])[0])
        means.append(ppo.learn(ACTOR, 0, buffer_of(one))["advantage.mean"])
    assert means[1] - means[0] == pytest.approx(following, abs=1e-4)
    assert following < -2


def test_values_stand_before_their_tokens() -> None:
    """What a token's value is does not depend on that token, and on all before it."""
    torch.manual_seed(0)
    values = TokenValues(small_policy().base_model, 32, None, start=-3.0)
    (first,), mask = values([((1, 2), (5, 6, 7))])
    (other,), _ = values([((1, 2), (5, 9, 7))])
    assert mask.tolist() == [[1, 1, 1]]
    torch.testing.assert_close(first[:2], other[:2])
    assert (first[2] - other[2]).abs() > 1e-6
    assert (first + 3).abs().max() < 1


def test_entropies_are_those_of_what_tokens_are_drawn_from() -> None:
    policy = small_policy()
    rows = [((1, 2), (5, 6, 7)), ((3,), (4,))]
    log_probs, mask, entropy = reply_log_probs_and_entropy(policy, rows)
    torch.testing.assert_close(log_probs, reply_log_probs(policy, rows)[0])
    logits = policy(input_ids=torch.tensor([[1, 2, 5, 6]])).logits[0, 1:]
    expected = torch.distributions.Categorical(logits=logits).entropy()
    torch.testing.assert_close(entropy[0], expected)
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]


def test_the_first_step_is_that_of_the_plain_policy_gradient() -> None:
    """Before it moves every ratio is 1: the gradient of the clipped loss is that of the tokens'
    log-probabilities by their advantages, and the values said the same as the critic's."""
    policy = small_policy()
    ppo = learner(
        policy, replace(POLICY, batch=100, max_grad_norm=0.0),
        replace(RULES, epochs=1, normalise=False),
    )  # fmt: skip
    other = copy.deepcopy(policy)
    total, count = torch.zeros(()), 0
    for one in EPISODES:
        rows = [(turn.state.ids, turn.reply.ids) for turn in one.turns]
        with torch.no_grad():
            said, _ = ppo.critic(rows)
        lengths = [len(reply) for _, reply in rows]
        values = [row[:length] for row, length in zip(said, lengths, strict=True)]
        for row, better in zip(rows, token_advantages(one, values, 0.9, 0.95), strict=True):
            log_probs, _ = reply_log_probs(other, [row])
            total = total - (log_probs[0] * better).sum()
            count += len(better)
    (total / count).backward()
    norm = torch.cat([each.grad.flatten() for each in other.parameters()]).norm()
    told = ppo.learn(ACTOR, 0, buffer_of(*EPISODES))
    assert told["grad_norm"] == pytest.approx(float(norm), rel=1e-4)


def test_only_the_newest_episodes_count() -> None:
    found = []
    for earlier in ([], [EPISODES[0]]):
        policy = small_policy()
        ppo, buffer = learner(policy), ReplayBuffer(None, 0.9)
        if earlier:
            buffer.add(earlier)
        buffer.add(EPISODES[1:])
        found.append((ppo.learn(ACTOR, 1, buffer), ppo.learn(CRITIC, 1, buffer)))
    assert found[0] == found[1]


@pytest.mark.parametrize("by", ["utterances", "episodes"])
def test_micro_batches_change_nothing(by: Any) -> None:
    rules = replace(RULES, by=by, value_clip=0.5, entropy_coef=0.01)
    actor = replace(POLICY, kl_penalty=0.1)
    weights = []
    for size in (64, 1):
        policy = small_policy()
        ppo = learner(policy, actor, rules, micro_batch=size)
        with torch.no_grad():  # away from its start, so that there is something to be penalised
            policy.model.norm.weight.mul_(1.5)
        buffer = buffer_of(*EPISODES)
        assert ppo.learn(ACTOR, 0, buffer)["kl"] != 0
        ppo.learn(CRITIC, 0, buffer)
        weights.append([
            each.detach().clone() for module in ppo.modules.values() for each in module.parameters()
        ])  # fmt: skip
    for one, other in zip(*weights, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def test_values_learn_what_the_episodes_earned() -> None:
    policy = small_policy()
    rules = replace(RULES, epochs=20, gae_lambda=1.0)
    ppo = learner(policy, rules=rules, values=replace(VALUES, lr=5e-3, batch=9))
    buffer = buffer_of(*EPISODES)
    first = ppo.learn(CRITIC, 0, buffer)
    again = ppo.learn(CRITIC, 1, buffer)
    assert first["explained"] < 0.3
    assert again["explained"] > 0.75


def test_a_penalty_holds_the_policy_to_its_start() -> None:
    """With advantages all alike and normalised to nothing, the penalty alone moves it: back."""
    alike = [conversation(1, [(5, 0)], [0])] * 4 + [conversation(1, [(6, 0)], [0])] * 4
    actor = replace(POLICY, kl_penalty=1.0, lr=1e-2, batch=100)
    policy = small_policy()
    ppo = learner(policy, actor, replace(RULES, epochs=4), replace(VALUES, start=0.0))
    for each in ppo.critic.parameters():
        torch.nn.init.zeros_(each)
    row = [((1,), (5, 0)), ((1,), (6, 0))]
    start = reply_log_probs(policy, row)[0].sum(dim=1).detach()
    with torch.no_grad():
        policy.get_output_embeddings().weight[5] += 0.5 * torch.randn(32)
    left = reply_log_probs(policy, row)[0].sum(dim=1).detach()
    assert abs(float((left - start)[0] - (left - start)[1])) > 0.1
    ppo.learn(ACTOR, 0, buffer_of(*alike))
    back = reply_log_probs(policy, row)[0].sum(dim=1).detach()
    gap, closed = (left - start), (back - start)
    assert abs(float(closed[0] - closed[1])) < abs(float(gap[0] - gap[1]))


def test_minibatches_hold_everything_once_and_none_is_small() -> None:
    groups = [[0, 1, 2], [3, 4], [5], [6, 7, 8]]
    parts = minibatches(groups, 4, 7)
    assert len(parts) == 2
    assert sorted(number for part in parts for number in part) == [*range(9)]
    for group in groups:
        assert any(set(group) <= set(part) for part in parts)
    assert minibatches(groups, 4, 7) == parts
    assert any(minibatches(groups, 4, key) != parts for key in range(4))
    assert [len(part) for part in minibatches([[n] for n in range(11)], 4, 1)] == [6, 5]
    assert [len(part) for part in minibatches([[n] for n in range(3)], 4, 1)] == [3]


def test_nothing_played_is_said() -> None:
    with pytest.raises(ValueError, match="nothing was played"):
        learner(small_policy()).learn(ACTOR, 0, buffer_of(Episode(())))


@pytest.mark.long
def test_it_finds_the_way_out() -> None:
    """On the corridor, as the benchmark has it; the best value of the first room is 3.2088."""
    start, end, _, _ = learn("ppo", 100, 20)
    assert start < -3
    assert end > 2.5
