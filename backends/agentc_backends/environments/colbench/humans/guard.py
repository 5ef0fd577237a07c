"""What of the reference is in a human's reply: whoever is told the code need not write any."""

from __future__ import annotations

from agentc_backends.data.chat.unsaid import unsaid_runs

WINDOW = 40
"""So many characters of the reference in a row are code. Shorter references count whole."""
REFUSAL = "I cannot write code."


def code_starts(reply: str, reference: str, description: str) -> int | None:
    """Where in a reply the reference's own characters begin, None where it has too few in a row.
    What the task's description says too, and signatures, the agent is told anyway."""
    size, runs = unsaid_runs(reference, WINDOW, description)
    places = (at for at in range(len(reply) - size + 1) if reply[at : at + size] in runs)
    return next(places, None)
