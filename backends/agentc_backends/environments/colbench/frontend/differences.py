"""What differs most between the page that is meant and the one that is shown, in a sentence.

From the texts of both alone, which is why it is a script's: colours behind and of texts, sizes,
places, texts that are missing or too many. A sentence tells what is wanted, in no words of HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentc.runtime.browser.blocks import TextBlock
from agentc.runtime.browser.render import WIDTH, WINDOW_HEIGHT
from agentc_backends.environments.colbench.frontend.matching import considered, match_blocks

SAME = "It looks as I want it."
_SHOWN = 80
_FAR, _LARGER, _TINT = 0.04, 0.12, 24
"""From when on a place, a size and a colour differ: shares of the window and of the size, and
levels of 255."""


def largest_difference(wanted: Sequence[TextBlock], made: Sequence[TextBlock]) -> str:
    """The sentence with the largest weight, of equal ones the first."""
    found = [*_differences(considered(wanted), considered(made))]
    return max(found, key=lambda each: each[0])[1] if found else SAME


def _differences(
    wanted: Sequence[TextBlock], made: Sequence[TextBlock]
) -> Iterator[tuple[float, str]]:
    pairs = match_blocks(wanted, made)
    shown, used = {pair.wanted for pair in pairs}, {pair.made for pair in pairs}
    for position, block in enumerate(wanted):
        if position not in shown:
            yield 3.0, f"I miss {_quoted(block)} {_where(block)}."
    for position, block in enumerate(made):
        if position not in used:
            yield 2.5, f"I do not want {_quoted(block)}."
    for pair in pairs:
        yield from _between(wanted[pair.wanted], made[pair.made])


def _between(one: TextBlock, other: TextBlock) -> Iterator[tuple[float, str]]:
    name = _quoted(one)
    for what, colour, shown in (
        (f"Behind {name} the colour should be", one.background, other.background),
        (f"{name} should be written in", one.color, other.color),
    ):
        tint = max(abs(a - b) for a, b in zip(colour, shown, strict=True))
        if tint > _TINT:
            yield 1.0 + tint / 255, f"{what} {_called(colour)}."
    if abs(one.size - other.size) > _LARGER * one.size:
        word = "larger" if one.size > other.size else "smaller"
        part = min(1.0, abs(one.size - other.size) / one.size)
        yield 1.0 + part, f"{name} should be {word}: {one.size:g} pixels high."
    across = (one.x + one.width / 2 - other.x - other.width / 2) / WIDTH
    down = (one.y + one.height / 2 - other.y - other.height / 2) / WINDOW_HEIGHT
    if max(abs(across), abs(down)) > _FAR:
        if abs(across) >= abs(down):
            word = "right" if across > 0 else "left"
        else:
            word = "down" if down > 0 else "up"
        part = min(1.0, max(abs(across), abs(down)))
        yield 1.0 + part, f"{name} should be further {word}, {_where(one)}."
    if one.text != other.text:
        yield 1.5, f"Instead of {_quoted(other)} it should say {name}."


def _quoted(block: TextBlock) -> str:
    text = block.text if len(block.text) <= _SHOWN else block.text[: _SHOWN - 3] + "..."
    return f'"{text}"'


def _where(block: TextBlock) -> str:
    middle = (block.x + block.width / 2) / WIDTH
    across = (
        "at the left" if middle < 0.36 else "at the right" if middle > 0.64 else "in the middle"
    )
    middle = (block.y + block.height / 2) / WINDOW_HEIGHT
    down = "at the top" if middle < 0.2 else "below the window" if middle > 1 else "further down"
    return f"{across}, {down}"


def _called(colour: tuple[int, int, int]) -> str:
    """A word and the exact number."""
    red, green, blue = colour
    exact = f"#{red:02x}{green:02x}{blue:02x}"
    if max(colour) - min(colour) < 25:
        level = sum(colour) / 3
        return f"{'black' if level < 50 else 'white' if level > 245 else 'grey'} ({exact})"
    word = ("red", "green", "blue")[max(range(3), key=lambda part: colour[part])]
    return f"{word} ({exact})"
