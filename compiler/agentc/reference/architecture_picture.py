"""The picture of ARCHITECTURE.md: levels with their passes on the left, layers on the right.

One SVG file that needs nothing else, drawn from the same tables as the page (`architecture.py`,
`levels.py`); readable on light and dark backgrounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from agentc.reference.levels import levels

_STYLE = """\
svg { --box: #ffffff; --line: #c9ced6; --edge: #8b95a3; --text: #1b2027; --quiet: #5c6673;
  --back: #f4f6f8; font: 13px system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
@media (prefers-color-scheme: dark) { svg { --box: #1c2128; --line: #3b434e; --edge: #77828f;
  --text: #e5e9ef; --quiet: #9aa5b3; --back: #14171c; } }
.back { fill: var(--back); } .box { fill: var(--box); stroke: var(--line); }
text { fill: var(--text); } .title { font-size: 15px; font-weight: 600; }
.name { font-weight: 600; } .quiet { fill: var(--quiet); font-size: 11px; }
.edge { stroke: var(--edge); stroke-width: 1.4; } .tip { fill: var(--edge); }"""

_LEFT, _WIDE, _HIGH, _STEP, _TOP = 24, 400, 44, 74, 56
_RIGHT, _LAYER_WIDE, _LAYER_STEP = 470, 466, 46
_LAYER_HIGH = 36


def picture(layers: tuple[tuple[str, ...], ...]) -> str:
    """The SVG's text."""
    left = list(_levels())
    right = list(_layers(layers))
    height = _TOP + max(len(levels()) * _STEP, len(layers) * _LAYER_STEP) + 16
    width = _RIGHT + _LAYER_WIDE + 24
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-label="Levels and layers of agentc">',
            f"<style>\n{_STYLE}\n</style>",
            f'<rect class="back" width="{width}" height="{height}"/>',
            _text(_LEFT, 32, "From a spec to a program", "title"),
            _text(_RIGHT, 32, "Packages: each imports only what is below it", "title"),
            *left,
            *right,
            "</svg>\n",
        ]
    )


def _levels() -> Iterator[str]:
    for number, level in enumerate(levels()):
        y = _TOP + number * _STEP
        if number:
            x, above = _LEFT + 28, y - (_STEP - _HIGH)
            yield f'<line class="edge" x1="{x}" y1="{above}" x2="{x}" y2="{y - 6}"/>'
            yield f'<path class="tip" d="M{x - 4},{y - 7} h8 l-4,7 z"/>'
            yield _text(x + 12, y - 11, ", ".join(level.made_by), "quiet")
        yield _box(_LEFT, y, _WIDE, _HIGH)
        yield _text(_LEFT + 12, y + 18, level.name, "name")
        yield _text(_LEFT + 12, y + 34, ", ".join(level.passes) or level.where, "quiet")


def _layers(layers: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    for number, layer in enumerate(layers):
        y = _TOP + number * _LAYER_STEP
        # Longer names get wider boxes.
        share = (_LAYER_WIDE - 6 * (len(layer) - 1)) / sum(len(name) + 2 for name in layer)
        x: float = _RIGHT
        for name in layer:
            wide = round(share * (len(name) + 2), 1)
            yield _box(x, y, wide, _LAYER_HIGH)
            yield _text(x + wide / 2, y + 22, name, "name", middle=True)
            x += wide + 6


def _box(x: float, y: float, wide: float, high: float) -> str:
    size = f'width="{wide:g}" height="{high:g}"'
    return f'<rect class="box" x="{x:g}" y="{y:g}" {size} rx="5"/>'


def _text(x: float, y: float, words: str, style: str, *, middle: bool = False) -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text class="{style}" x="{x:g}" y="{y:g}"{anchor}>{escape(words)}</text>'
