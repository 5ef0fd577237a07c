"""ArCHer's policy phase on a small model: how far it goes from its start, and what the row says of
replies that its critic has never met."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from tests.torch.online_rl.test_ppo import EPISODES, buffer_of, conversation, small_policy

from agentc.kinds.reinforcement import ActorSteps
from agentc_backends.trainers.online_rl.archer import ArcherLearner
from agentc_backends.trainers.online_rl.learning import ACTOR, Learning, reply_log_probs
from agentc_backends.trainers.online_rl.sampling import Decode, Sampler
from agentc_backends.trainers.online_rl.settings import CriticPhase

CRITIC = CriticPhase(
    lr=1e-3, updates=1, batch=4, discount=0.9, target_rate=0.1, value_target="data", hidden=None,
    start=0.0, max_grad_norm=1.0,
)  # fmt: skip


def learner(policy: Any, kl_penalty: float = 0.0, most: int = 4) -> ArcherLearner:
    actor = ActorSteps(
        lr=5e-3, updates=12, batch=32, max_grad_norm=0, advantage="centred", kl_penalty=kl_penalty
    )
    decode = Decode(max_tokens=most, ends=frozenset({0}))
    learning = Learning(
        policy=policy, tokenizer=None, sampler=Sampler(policy), decode=decode, seed=1,
        micro_batch=64,
    )  # fmt: skip
    return ArcherLearner(learning, CRITIC, actor)


def test_the_row_tells_how_many_replies_were_never_met() -> None:
    """One token is all that this policy may say."""
    everything = [conversation(first, [(first,)], [0.0]) for first in range(40)]
    for met, expected in ((everything, 0.0), (everything[:1], 1.0)):
        told = learner(small_policy(), most=1).learn(ACTOR, 0, buffer_of(*met))
        assert told["unmet"] == pytest.approx(expected, abs=0.1)


def test_a_penalty_holds_the_policy_to_its_start() -> None:
    """The critic is one that has learnt nothing: without it the policy follows its guesses."""
    apart = []
    for penalty in (0.0, 3.0):
        policy = small_policy()
        start = copy.deepcopy(policy)
        learner(policy, penalty).learn(ACTOR, 0, buffer_of(*EPISODES))
        rows = [(one.turns[0].state.ids, (token,)) for one in EPISODES for token in range(40)]
        with torch.no_grad():
            now, _ = reply_log_probs(policy, rows)
            then, _ = reply_log_probs(start, rows)
        apart.append(float((now.exp() * (now - then)).sum()) / len(EPISODES))
    assert apart[1] < 0.5 * apart[0]
