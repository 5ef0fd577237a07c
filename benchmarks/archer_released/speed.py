"""Seconds of a processor for a step of the critic and one of the policy, and how often the policy
is asked one after the other: the released trainer and ours, by turns, on the same games."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.kinds.reinforcement import ActorSteps
from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.engine.model import load_tokenizer
from agentc_backends.trainers.online_rl.archer import ArcherLearner
from agentc_backends.trainers.online_rl.learning import ACTOR, Learning
from agentc_backends.trainers.online_rl.readers import Text, TextPrefix, load_encoder
from agentc_backends.trainers.online_rl.replay import Episode, EpisodeTurn, ReplayBuffer
from agentc_backends.trainers.online_rl.sampling import Decode, Sampler
from agentc_backends.trainers.online_rl.settings import CriticPhase
from benchmarks.archer_released.released import Released, count_passes
from benchmarks.archer_released.tiny import OPENING, WIDTH, Told

ROWS, ACCUMULATED = 8, 32
BATCH = ROWS * ACCUMULATED


@dataclass(frozen=True, slots=True)
class Spent:
    """Of one step each: seconds of a processor; `passes` of the policy for the critic's."""

    critic_s: float
    actor_s: float
    passes: float


def released_spent(
    checkout: Path, policy: Path, encoder: Path, played: Sequence[Sequence[Told]], steps: int
) -> Spent:
    """With the released proportions: 32 micro-batches of 8, replies of 32 tokens."""
    theirs = Released(
        checkout, policy, encoder, width=WIDTH, rows=ROWS, accumulated=ACCUMULATED, clip=1.0,
        critic_lr=2e-5, actor_lr=1e-6,
    )  # fmt: skip
    for game in played:
        for one in game:
            theirs.buffer.insert(
                observation=one.state, action=one.reply, reward=one.reward,
                next_observation=one.following, done=one.done, mc_return=0.0,
            )  # fmt: skip
    passes = count_passes(theirs.agent.model)
    critic_s = _timed(lambda: theirs.update(steps, 0)) / steps
    asked = passes() / steps
    return Spent(critic_s, _timed(lambda: theirs.update(0, 1)), asked)


def our_spent(
    policy: Path,
    encoder: Path | None,
    played: Sequence[Sequence[Told]],
    steps: int,
    by: Any = "utterances",
) -> Spent:
    """With the same encoder, or without one on the policy's own body."""
    model, tokenizer = load_model(policy).eval(), load_tokenizer(str(policy))
    newline = frozenset(tokenizer("\n")["input_ids"])
    reader = None
    if encoder is not None:
        reader = load_encoder(encoder, tokenizer, "pooler", 512, seed=0)
    learner = ArcherLearner(
        Learning(
            policy=model,
            tokenizer=tokenizer,
            sampler=Sampler(model),
            decode=Decode(max_tokens=32, ends=newline),
            seed=0,
            micro_batch=64,
            encoder=reader,
        ),
        CriticPhase(
            lr=2e-5, updates=steps, batch=BATCH, discount=0.95, target_rate=0.1,
            value_target="policy", hidden=None, start=0.0, max_grad_norm=1.0,
        ),
        ActorSteps(lr=1e-6, updates=1, batch=BATCH, max_grad_norm=1.0),
    )  # fmt: skip
    buffer = ReplayBuffer(100000, 0.95, by=by)
    buffer.add([_tokens_of(game, tokenizer) for game in played])
    passes = count_passes(model.base_model)
    critic_s = _timed(lambda: learner.learn("critic", 0, buffer)) / steps
    asked = passes() / steps
    return Spent(critic_s, _timed(lambda: learner.learn(ACTOR, 0, buffer)), asked)


def _tokens_of(game: Sequence[Told], tokenizer: Any) -> Episode:
    """A state is what was said and answered so far; all are prefixes of one text."""
    ids = [*tokenizer(OPENING)["input_ids"]]
    places = [len(ids)]
    for one in game:
        ids += tokenizer(one.following[len(one.state) :])["input_ids"]
        places.append(len(ids))
    text = Text(tuple(ids))
    return Episode(
        tuple(
            EpisodeTurn(
                TextPrefix(text, at),
                Text(tuple(tokenizer(one.reply + "\n")["input_ids"])),
                one.reward,
            )
            for at, one in zip(places, game, strict=False)
        )
    )


def _timed(work: Any) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
