"""Which text of one page is which of another: greedily by likeness, the most alike first.

After Si et al. 2024 (Design2Code, arXiv 2403.03163), who match blocks of text in this way; their
numbers are of other blocks, and not ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from agentc.runtime.browser.blocks import TextBlock

LEAST = 0.5
"""Texts less alike than this are two."""
_MOST, _LETTERS = 100, 200
"""Blocks and letters that are looked at: a page of a model may have any number."""


@dataclass(frozen=True, slots=True)
class BlockMatch:
    """Positions of a pair, and how alike their texts are, 0 to 1."""

    wanted: int
    made: int
    likeness: float


def match_blocks(wanted: Sequence[TextBlock], made: Sequence[TextBlock]) -> list[BlockMatch]:
    """Each block at most once; ties by position."""
    pairs = _equal(considered(wanted), considered(made))
    taken, used = {pair.wanted for pair in pairs}, {pair.made for pair in pairs}
    left = [(i, _letters(each.text)) for i, each in enumerate(wanted[:_MOST]) if i not in taken]
    found: list[tuple[float, int, int]] = []
    for j, other in enumerate(made[:_MOST]):
        letters = _letters(other.text)
        for i, wished in left if j not in used else ():
            likeness = 2 * (wished & letters).total() / (wished.total() + letters.total())
            if likeness >= LEAST:
                found.append((-likeness, i, j))
    for negative, i, j in sorted(found, key=lambda each: (each[0], abs(each[1] - each[2]), each)):
        if i not in taken and j not in used:
            taken.add(i)
            used.add(j)
            pairs.append(BlockMatch(i, j, -negative))
    return sorted(pairs, key=lambda pair: pair.wanted)


def considered(blocks: Sequence[TextBlock]) -> Sequence[TextBlock]:
    """Those that are looked at."""
    return blocks[:_MOST]


def _equal(wanted: Sequence[TextBlock], made: Sequence[TextBlock]) -> list[BlockMatch]:
    """Equal texts, the first of one page with the first of the other."""
    places: dict[str, list[int]] = {}
    for j in reversed(range(len(made))):
        places.setdefault(made[j].text, []).append(j)
    return [
        BlockMatch(i, places[block.text].pop(), 1.0)
        for i, block in enumerate(wanted)
        if places.get(block.text)
    ]


def _letters(text: str) -> Counter[str]:
    """Its pairs of letters. They are alike by how many of them two texts share (Dice 1945), which
    takes the same time whatever a page says; matching of sequences does not."""
    shown = f" {text[:_LETTERS]} "
    return Counter(one + two for one, two in pairwise(shown))
