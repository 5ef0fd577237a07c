"""Workloads of RL: what a learner reads, draws and steps, online by its algorithm, and offline on
recorded episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agentc.cost.amounts import (
    Guesses,
    Workload,
    environment_of,
    first_prompt,
    row_bytes,
    turns_expected,
    turns_in_prompt,
)
from agentc.cost.parameters import shape_of_name
from agentc.cost.past import Traits
from agentc.cost.quantities import ZERO, Quantity, prior, sum_in_step, total
from agentc.cost.subject import JobProfile


@dataclass(frozen=True, slots=True)
class LearnerWork:
    """`rows` are prompts with a reply that go through a network once (a gradient counts as two
    more), `drawn` the replies beside those of episodes, `steps` the gradient steps."""

    rows: Quantity
    drawn: Quantity
    steps: Quantity


def learner_work(
    subject: JobProfile,
    played: Quantity,
    turns: Quantity,
    encoder: Quantity | None,
    reply: float,
) -> LearnerWork:
    """Of a job that plays so many turns in all, and so many in an episode. Whole episodes are read
    in one pass; fresh replies of the policy stand in no text. `encoder` is the size of a critic's
    own one, by the policy's: it reads each state anew. `reply` is the share that a reply has of a
    prompt with it."""
    iterations = subject.number("iterations", 1)
    at_once = max(1.0, turns.median if subject.setting("buffer.by") == "episodes" else 1.0)
    batch = subject.number("actor.batch", 256)
    learner = subject.config.get("learner")
    rules = learner.get("rules") if isinstance(learner, Mapping) else None
    if isinstance(rules, Mapping) and "epochs" in rules:  # PPO
        epochs = float(rules["epochs"])
        of_critic = subject.number("critic.batch", 256)
        each = played.times(1 / iterations)
        parts = sum(max(1.0, each.median // size) for size in (batch, of_critic))
        # Policy and values with gradient; before and after, each of them twice without.
        rows = played.times((2 * 3 * epochs + 4) / at_once)
        return LearnerWork(rows, ZERO, Quantity(iterations * epochs * parts, each.spread))
    updates = subject.number("actor.updates", 3)
    steps = Quantity(iterations * updates)
    if isinstance(learner, Mapping) and "group" in learner:  # TRL's: an episode is one text
        passes = updates / float(learner["minibatches"])
        return LearnerWork(played.times(3 * passes / max(1.0, turns.median)), ZERO, steps)
    if isinstance(learner, Mapping) and "actor" not in learner:
        steps = ZERO  # CHAI, whose policy learns nothing
    drawn = steps.times(batch)
    rows = steps.times(batch * 3)
    if isinstance(learner, Mapping) and "critic" not in learner:
        return LearnerWork(rows.times(1 / at_once), drawn, steps)
    fitted = Quantity(iterations * subject.number("critic.updates", 50))
    values = fitted.times(subject.number("critic.batch", 256))
    # Two states and two replies for the targets, a state and a reply with gradient.
    share = 4 / at_once if encoder is None else 4 * encoder.median
    critic = learner.get("critic") if isinstance(learner, Mapping) else None
    more = float(critic.get("candidates", 1)) - 1 if isinstance(critic, Mapping) else 0.0
    # CHAI's candidates besides the first, of episodes and of targets, each read by the critic.
    ranked = total([played, values]).times(more)
    return LearnerWork(
        total([rows, values.times(share), ranked.times(reply)]),
        total([drawn, values, ranked]),
        total([steps, fitted]),
    )


def forecast_reinforcement(guesses: Guesses, subject: JobProfile) -> Workload:
    """Episodes of all iterations, and what critic and policy read of them (archer.md, A6)."""
    _, label, limit = guesses.tasks_of(subject)
    model = guesses.model_of(subject, "model") or shape_of_name("")
    iterations = subject.number("iterations", 1)
    episodes = Quantity(iterations * subject.number("episodes", 1))
    talk = guesses.talk_of(subject)
    environment = environment_of(subject)
    traits: Traits = {"environment": label, "policy": "trained", "max_turns": limit}
    expected = turns_expected(talk, limit)
    turns = guesses.settle(subject, "turns", environment, expected, traits)
    longest = subject.number("decode.max_tokens", 32)
    reply = Quantity(min(talk.reply.median, longest), prior("reply_tokens").spread)
    reply = guesses.settle(subject, "reply", environment, reply, {**traits, "max_tokens": longest})
    turn = total([reply, talk.observation])
    first = first_prompt(subject, talk)
    context = total([first, turn.times(turns_in_prompt(subject, turns))])
    context = guesses.settle(subject, "context", environment, context, traits)
    read = total([context, reply])
    played = episodes.times(turns)
    encoder = guesses.model_of(subject, "encoder")
    apart = None if encoder is None else encoder.parameters.times(1 / model.parameters.median)
    share = reply.median / read.median
    work = learner_work(subject, played, turns, apart, share)
    tokens = total([played, work.rows]).times(read)
    shape = replace(model, trained=True)
    kept = 1 + len(subject.setting("keep") or ())
    disk = total([model.parameters.times(4 * (kept + 2)), episodes.times(row_bytes(read.times(2)))])
    return Workload(
        rows=episodes, turns=played, replied=total([played, work.drawn]).times(reply),
        context=context, steps=work.steps, tokens=tokens, model=shape, output=shape, disk=disk,
    )  # fmt: skip


# Workload of a stage that learns from recorded episodes: what its critic and its policy read.

_CRITIC_PASSES = 4
"""Forward passes that a row of a critic's step is worth: targets of the slow copy, and a pass with
gradient, over states and replies that are partly the same."""
_ACTOR_PASSES = 3
_MODELS = 3
"""Policy, critic and the critic's slow copy; the moments of two of them are as much again twice."""


def forecast_experience(guesses: Guesses, subject: JobProfile) -> Workload:
    """Steps by batch by what is read; a turn's context is about half of its episode. Whole
    episodes are read in one pass."""
    data = guesses.rows_of(subject, "data")
    model = guesses.model_of(subject, "model") or shape_of_name("")
    episodes = sum_in_step(rows.count for rows in data)
    tokens = data[0].tokens if data else prior("prompt_tokens")
    turns = data[0].turns if data else Quantity(5, 0.7)
    longest = subject.number("decode.max_tokens", 32)
    usual = prior("reply_tokens")
    reply = Quantity(min(usual.median, longest), usual.spread)
    context = tokens.times(0.5)
    at_once = turns.median if subject.setting("buffer.by") == "episodes" else 1.0
    iterations = subject.number("iterations", 1)
    valued = iterations * subject.number("critic.updates", 50)
    warmed = max(0.0, iterations - subject.number("warmup", 0))
    improved = warmed * subject.number("actor.updates", 50)
    of_critic = Quantity(valued * subject.number("critic.batch", 128))
    of_actor = Quantity(improved * subject.number("actor.batch", 128))
    fresh = subject.setting("actor.objective") == "policy_gradient"
    drawn = [of_actor] if fresh else []
    drawn += [of_critic] if subject.setting("critic.value_target") == "policy" else []
    # Fresh replies stand in no text of an episode.
    passes = [
        of_critic.times(_CRITIC_PASSES / max(1.0, at_once)),
        of_actor.times(_ACTOR_PASSES / (1.0 if fresh else max(1.0, at_once))),
    ]
    kept = 1 + len(subject.setting("keep") or ())
    state = _MODELS + 4 if subject.setting("publish_state") is not False else 0
    shape = replace(model, trained=True)
    return Workload(
        rows=episodes,
        replied=total(drawn).times(reply),
        context=context,
        tokens=total(passes).times(total([context, reply])),
        steps=Quantity(valued + improved),
        disk=total([model.parameters.times(4.0 * (kept + state)), Quantity(1e5, 0.5)]),
        model=shape,
        output=shape,
    )
