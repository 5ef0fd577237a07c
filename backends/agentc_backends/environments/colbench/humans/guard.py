"""What of the reference is in a human's reply: whoever is told the code need not write any."""

from __future__ import annotations

WINDOW = 40
"""So many characters of the reference in a row are code. Shorter references count whole."""
REFUSAL = "I cannot write code."


def code_starts(reply: str, reference: str) -> int | None:
    """Where in a reply the reference's own characters begin, None where it has too few in a row."""
    whole = reference.strip()
    size = min(WINDOW, len(whole))
    if not size or len(reply) < size:
        return None
    windows = {whole[start : start + size] for start in range(len(whole) - size + 1)}
    places = (at for at in range(len(reply) - size + 1) if reply[at : at + size] in windows)
    return next(places, None)
