"""The picture: one SVG file that needs nothing else, readable on light and dark backgrounds, alone
or in a page with a table of all stages.
"""

from __future__ import annotations

from html import escape
from itertools import pairwise

from agentc.graph.layers import Point
from agentc.graph.layout import HEIGHT, WIDTH, EdgeLine, Frame, lay_out
from agentc.graph.stages import GraphNode, StageGraph

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


_MARGIN = 20.0
_GAP = 10.0
_NAME_SIZE, _QUIET_SIZE = 13.0, 11.0
_HEAD = 64.0
_LEGEND = (
    ("changed", "changed, to run"),
    ("run", "to run"),
    ("cached", "in the store"),
    ("unneeded", "not needed"),
)

STYLE = """\
svg.stages { --back: #ffffff; --box: #ffffff; --line: #c9ced6; --edge: #8b95a3; --text: #1b2027;
  --quiet: #5c6673; --frame: #f4f6f8; --run: #1f5fbf; --changed: #c2570c; --cached: #1d7a46;
  --unneeded: #a3abb6; font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans",
  sans-serif; }
@media (prefers-color-scheme: dark) { svg.stages { --back: #14171c; --box: #1c2128;
  --line: #3b434e; --edge: #77828f; --text: #e5e9ef; --quiet: #9aa5b3; --frame: #191d23;
  --run: #7fb0f5; --changed: #f0a05e; --cached: #66c48d; --unneeded: #5d6773; } }
.stages .back { fill: var(--back); }
.stages .frame { fill: var(--frame); stroke: var(--line); }
.stages .box { fill: var(--box); stroke: var(--line); }
.stages .edge { fill: none; stroke: var(--edge); stroke-width: 1.2; }
.stages .tip { fill: var(--edge); }
.stages text { fill: var(--text); }
.stages .title { font-size: 18px; font-weight: 600; }
.stages .name { font-weight: 600; }
.stages .quiet { fill: var(--quiet); font-size: 11px; }
.stages .frame-title { fill: var(--quiet); font-size: 12px; font-weight: 600; }
.stages .unneeded .name { fill: var(--quiet); font-weight: 400; }
.stages .run .stripe, .stages .run .state { fill: var(--run); }
.stages .changed .stripe, .stages .changed .state { fill: var(--changed); }
.stages .cached .stripe, .stages .cached .state { fill: var(--cached); }
.stages .unneeded .stripe, .stages .unneeded .state { fill: var(--unneeded); }
.stages a:hover .box, .stages a:focus .box { stroke: var(--run); stroke-width: 2; }
"""


def svg_text(graph: StageGraph, headline: str, *, links: bool = False) -> str:
    """The SVG; with `links` each stage leads to `#<id>` of the page around it."""
    layout = lay_out(graph)
    seen = {node.style for node in graph.nodes}
    names = [(state, words) for state, words in _LEGEND if state in seen]
    # The title and the legend need room of their own; long lines of text have no measure here.
    width = max(layout.width, 7.0 * len(headline), 420.0) + 2 * _MARGIN
    height = layout.height + _HEAD + 2 * _MARGIN
    shift_x, shift_y = (width - layout.width) / 2, _HEAD + _MARGIN
    nodes = {node.id: node for node in graph.nodes}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="stages" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(f"Stages of {graph.name}")}">',
        f"<style>{STYLE}</style>",
        f'<rect class="back" width="{width:.0f}" height="{height:.0f}"/>',
        f'<text class="title" x="{_MARGIN}" y="34">{escape(graph.name)}</text>',
        f'<text class="quiet" x="{_MARGIN}" y="54">{escape(headline)}</text>',
        *_legend(names, _MARGIN, 72),
        f'<g transform="translate({shift_x:.1f},{shift_y:.1f})">',
        *(_frame(frame) for frame in layout.frames),
        *(_line(line) for line in layout.lines),
        *(_box(nodes[name], corner, links) for name, corner in layout.corners.items()),
        "</g></svg>",
    ]
    return "\n".join(parts) + "\n"


def _legend(
    names: tuple[tuple[str, str], ...] | list[tuple[str, str]], x: float, y: float
) -> list[str]:
    parts = []
    for state, words in names:
        parts.append(
            f'<g class="{state}"><rect class="stripe" x="{x:.0f}" y="{y - 8:.0f}" width="8" '
            f'height="8" rx="2"/></g>'
            f'<text class="quiet" x="{x + 13:.0f}" y="{y:.0f}">{words}</text>'
        )
        x += 28 + 6.2 * len(words)
    return parts


def _frame(frame: Frame) -> str:
    return (
        f'<rect class="frame" x="{frame.x:.1f}" y="{frame.y:.1f}" width="{frame.width:.1f}" '
        f'height="{frame.height:.1f}" rx="10"/><text class="frame-title" x="{frame.x + 12:.1f}" '
        f'y="{frame.y + 20:.1f}">{escape(frame.title)}</text>'
    )


def _line(line: EdgeLine) -> str:
    x, y = line.points[0]
    path = [f"M{x:.1f},{y:.1f}"]
    for (x1, y1), (x2, y2) in pairwise(line.points):
        path.append(_bend(x1, y1, x2, y2))
    drawn = f'<path class="edge" d="{" ".join(path)}"/>'
    return drawn + (_tip(line.points[-1]) if line.arrow else "")


def _bend(x1: float, y1: float, x2: float, y2: float) -> str:
    if abs(x1 - x2) < 0.5:
        return f"L{x2:.1f},{y2:.1f}"
    middle = (y1 + y2) / 2
    return f"C{x1:.1f},{middle:.1f} {x2:.1f},{middle:.1f} {x2:.1f},{y2:.1f}"


def _tip(point: Point) -> str:
    x, y = point
    return f'<path class="tip" d="M{x:.1f},{y:.1f} l-3.5,-7 h7 z"/>'


def _box(node: GraphNode, corner: Point, links: bool) -> str:
    x, y = corner
    state = node.style
    # The state stands right of the name, a gap apart.
    room = WIDTH - 14 - 8 - _GAP - text_width(_WORDS[state], _QUIET_SIZE)
    label = fitted(node.label, room, _NAME_SIZE, bold=state != "unneeded")
    about = f"{node.backend}  {node.key}" if node.backend else node.note
    about = fitted(about, WIDTH - 14 - 8, _QUIET_SIZE)
    tip = " · ".join(part for part in (node.id, node.kind, node.state_words, node.note) if part)
    link = f' href="#{escape(node.id)}"' if links and node.backend else ""
    tag = "a" if link else "g"
    # The state is a word, too: colour alone is not for everybody.
    return (
        f'<{tag} class="{state}"{link}><title>{escape(tip)}</title>'
        f'<rect class="box" x="{x:.1f}" y="{y:.1f}" width="{WIDTH:.0f}" height="{HEIGHT:.0f}" '
        f'rx="6"/><rect class="stripe" x="{x:.1f}" y="{y:.1f}" width="5" height="{HEIGHT:.0f}" '
        f'rx="2"/><text class="name" x="{x + 14:.1f}" y="{y + 19:.1f}">{escape(label)}</text>'
        f'<text class="quiet" x="{x + 14:.1f}" y="{y + 36:.1f}">{escape(about)}</text>'
        f'<text class="quiet state" x="{x + WIDTH - 8:.1f}" y="{y + 19:.1f}" '
        f'text-anchor="end">{_WORDS[state]}</text></{tag}>'
    )


_WORDS = {"changed": "changed", "run": "run", "cached": "✓", "unneeded": "–"}


# The graph as a page that opens alone: the picture, and under it a table of all stages.

_STYLE = """\
:root { color-scheme: light dark; --back: #ffffff; --text: #1b2027; --quiet: #5c6673;
  --line: #d9dde3; }
@media (prefers-color-scheme: dark) { :root { --back: #14171c; --text: #e5e9ef; --quiet: #9aa5b3;
  --line: #343b45; } }
body { margin: 0 auto; padding: 16px; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
.wide { overflow-x: auto; }
.wide svg { display: block; margin: 0 auto; max-width: none; }
table { border-collapse: collapse; margin: 24px auto; font-size: 14px; }
th, td { padding: 5px 18px 5px 0; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top; }
thead th { color: var(--quiet); font-weight: 500; }
tbody th { font-weight: 600; white-space: nowrap; }
tr:target { outline: 2px solid var(--quiet); }
td.reads { color: var(--quiet); max-width: 34em; }
code { font-size: 13px; }
"""


def page_text(graph: StageGraph, headline: str) -> str:
    """One HTML file without references to anything outside it."""
    rows = "\n".join(_row(node, graph) for node in graph.nodes)
    name = escape(graph.name)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}: stages</title>
<style>{_STYLE}</style>
</head>
<body>
<div class="wide">
{svg_text(graph, headline, links=True)}</div>
<div class="wide">
<table>
<thead><tr><th>stage</th><th>kind</th><th>backend</th><th>key</th><th>state</th><th>reads</th></tr>
</thead>
<tbody>
{rows}
</tbody>
</table>
</div>
</body>
</html>
"""


def _row(node: GraphNode, graph: StageGraph) -> str:
    state = ", ".join(part for part in (node.state_words, node.note) if part)
    reads = ", ".join(graph.reads[node.id])
    return (
        f'<tr id="{escape(node.id)}"><th>{escape(node.id)}</th><td>{escape(node.kind)}</td>'
        f"<td>{escape(node.backend)}</td><td><code>{escape(node.key)}</code></td>"
        f'<td>{escape(state)}</td><td class="reads">{escape(reads)}</td></tr>'
    )
