"""Workload of a stage that learns from recorded episodes: what its critic and its policy read.

Neighbours: `workload.py`, which asks, and has the like for runs that play.
"""

from __future__ import annotations

from dataclasses import replace

from agentc.cost.amounts import Guesses, Workload
from agentc.cost.parameters import shape_of_name
from agentc.cost.priors import prior
from agentc.cost.quantity import Quantity, sum_in_step, total
from agentc.cost.subject import JobProfile

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
    model = guesses.model_of(subject, "policy") or shape_of_name("")
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
