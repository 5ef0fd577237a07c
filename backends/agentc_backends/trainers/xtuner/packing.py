"""What XTuner's packing will make of the rows: counted before it trains, since the length of the
run depends on it, and since a sequence without a trained token would make the loss not a number.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentc_backends.data.chat.rows import RowsError, Side

_CHUNK = 1000
"""Rows that the data set library hands to XTuner's packer at a time."""


def packed_sequences(sides: Sequence[Side], max_length: int) -> list[list[bool]]:
    """The trained-token masks of the packed sequences, in XTuner's order. What is left at the end
    of a chunk opens the next one; what is left at the very end is not trained.

    Raises RowsError when a sequence has no trained token.
    """
    sequences: list[list[bool]] = []
    rest: list[bool] = []
    for start in range(0, len(sides), _CHUNK):
        for side in sides[start : start + _CHUNK]:
            rest += side.trained
        whole = len(rest) // max_length
        if whole == 0:
            sequences.append(rest)
            rest = []
            continue
        sequences += [rest[i * max_length : (i + 1) * max_length] for i in range(whole)]
        rest = rest[whole * max_length :]
    empty = sum(not any(sequence[1:]) for sequence in sequences)
    if empty:
        raise RowsError(
            f"{empty} of {len(sequences)} packed sequences of {max_length} tokens hold no trained "
            "token; raise max_length, or leave packing out"
        )
    return sequences
