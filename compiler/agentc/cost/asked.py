"""What the models that environments ask have to do: a human's reply for each turn of an agent.

Neighbours: `workload.py`, which puts it beside the agent's own work; formulas in docs/cost.md.
"""

from __future__ import annotations

from dataclasses import replace

from agentc.cost.amounts import Guesses, Workload
from agentc.cost.priors import prior
from agentc.cost.quantity import total
from agentc.cost.subject import JobProfile
from agentc.kinds.groups import ACTING


def with_asked(guesses: Guesses, subject: JobProfile, work: Workload) -> Workload:
    """The workload with that of the model that the job's environment asks; itself where it asks
    none. Each turn is answered by one reply, behind a prompt of its own and the dialogue so far."""
    role = subject.asking
    if role is None or subject.kind not in ACTING:
        return work
    reply = prior("asked_reply")
    replied = work.turns.times(reply)
    read = total([prior("asked_prompt"), work.context])
    return replace(
        work,
        asked=work.turns.times(total([read, reply])),
        asked_replied=replied,
        asked_context=read,
        asked_model=guesses.model_of(subject, role),
    )
