"""What the learner of a run of online RL reads, draws and steps, by its algorithm.

Counted from the settings of the stage; `workload.py` has the episodes and puts both together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentc.cost.quantity import ZERO, Quantity, total
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
