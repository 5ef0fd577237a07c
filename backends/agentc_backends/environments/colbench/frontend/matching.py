"""Which text of one page is which of another: greedily by likeness, the most alike first.

After Si et al. 2024 (Design2Code, arXiv 2403.03163), who match blocks of text in this way; their
numbers are of other blocks, and not ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from agentc.runtime.browser.blocks import TextBlock

LEAST = 0.5
"""Texts less alike than this are two."""
_MOST, _LETTERS = 150, 200
"""Blocks and letters that are looked at: a page of a model may have any number."""


@dataclass(frozen=True, slots=True)
class BlockMatch:
    """Positions of a pair, and how alike their texts are, 0 to 1."""

    wanted: int
    made: int
    likeness: float


def match_blocks(wanted: Sequence[TextBlock], made: Sequence[TextBlock]) -> list[BlockMatch]:
    """Each block at most once; ties by position."""
    found: list[tuple[float, int, int]] = []
    for j, other in enumerate(made[:_MOST]):
        matcher = SequenceMatcher(b=other.text[:_LETTERS], autojunk=False)
        for i, block in enumerate(wanted[:_MOST]):
            likeness = _likeness(matcher, block.text[:_LETTERS], other.text[:_LETTERS])
            if likeness >= LEAST:
                found.append((-likeness, i, j))
    taken: set[int] = set()
    used: set[int] = set()
    pairs = []
    for negative, i, j in sorted(found, key=lambda each: (each[0], abs(each[1] - each[2]), each)):
        if i not in taken and j not in used:
            taken.add(i)
            used.add(j)
            pairs.append(BlockMatch(i, j, -negative))
    return sorted(pairs, key=lambda pair: pair.wanted)


def considered(blocks: Sequence[TextBlock]) -> Sequence[TextBlock]:
    """Those that are looked at."""
    return blocks[:_MOST]


def _likeness(matcher: SequenceMatcher[str], text: str, other: str) -> float:
    if text == other:
        return 1.0
    matcher.set_seq1(text)
    if matcher.real_quick_ratio() < LEAST or matcher.quick_ratio() < LEAST:
        return 0.0
    return matcher.ratio()
