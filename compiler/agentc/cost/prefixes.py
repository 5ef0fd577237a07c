"""How many episodes go on from the trajectories of an input, and what their policies have left to
do. Neighbour: `workload.py`."""

from __future__ import annotations

from agentc.cost.amounts import Guesses
from agentc.cost.quantity import Quantity, sum_in_step
from agentc.cost.subject import JobProfile
from agentc.kinds.prefix import PREFIXES

_FAILURES = Quantity(0.6, 0.5)
"""Share of trajectories that `prefix.max_reward` leaves, before anything is known of them."""
_LEFT = Quantity(0.6, 0.3)
"""Share of an episode's turns that lies behind its prefix."""


def prefixes_of(guesses: Guesses, subject: JobProfile) -> Quantity | None:
    """The prefixes of a job; None where its episodes begin at their start."""
    sources = guesses.rows_of(subject, PREFIXES.name)
    if not sources:
        return None
    each = []
    for rows in sources:
        # A tree has a trajectory for each of its leaves.
        count = rows.count.times(rows.leaves) if rows.leaves.median else rows.count
        each.append(count.times(rows.turns) if subject.setting("prefix.cut") == "every" else count)
    found = sum_in_step(each)
    return found if subject.setting("prefix.max_reward") is None else found.times(_FAILURES)


def turns_left(turns: Quantity) -> Quantity:
    """Replies of an episode's policy behind its prefix."""
    return turns.times(_LEFT)
