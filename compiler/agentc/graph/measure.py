"""How wide text is in the picture: by the letters of DejaVu Sans, the widest of the fonts that its
style names, since nobody knows which one a viewer has."""

from __future__ import annotations

_FIRST = 32
_REGULAR = (
    "32 40 46 84 64 95 78 27 39 39 50 84 32 36 32 34 64 64 64 64 64 64 64 64 64 64 34 34 84 84 84 "
    "53 100 68 69 70 77 63 58 77 75 29 29 66 56 86 75 79 60 79 69 63 61 73 68 99 69 61 69 39 34 39 "
    "84 50 50 61 63 55 63 62 35 63 63 28 28 58 28 97 63 61 63 63 41 52 39 63 59 82 59 59 52 64 34 "
    "64 84"
)
_BOLD = (
    "35 46 52 84 70 100 87 31 46 46 52 84 38 42 38 37 70 70 70 70 70 70 70 70 70 70 40 40 84 84 84 "
    "58 100 77 76 73 83 68 68 82 84 37 37 77 64 100 84 85 73 85 77 72 68 81 77 110 77 72 73 46 37 "
    "46 84 50 50 67 72 59 72 68 44 72 71 34 34 67 34 104 71 69 72 72 49 60 48 71 65 92 65 65 58 71 "
    "37 71 84"
)
_WIDTHS = {bold: tuple(map(int, text.split())) for bold, text in ((False, _REGULAR), (True, _BOLD))}
"""Hundredths of the size, from the blank to the tilde."""
_OTHER = 100
"""What any other letter takes, the ellipsis included."""


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Units that a text takes."""
    widths = _WIDTHS[bold]
    places = (ord(letter) - _FIRST for letter in text)
    return size / 100 * sum(widths[n] if 0 <= n < len(widths) else _OTHER for n in places)


def fitted(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """The text, or its beginning and its end around an ellipsis, in the room that there is."""
    if text_width(text, size, bold=bold) <= room:
        return text
    for most in range(len(text) - 1, 1, -1):
        cut = text[: most // 2] + "…" + text[len(text) - (most - most // 2 - 1) :]
        if text_width(cut, size, bold=bold) <= room:
            return cut
    return "…"
