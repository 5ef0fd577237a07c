"""The SVG of a report: line charts, and the graph of its jobs. Geometry is computed here; every
text goes through Markup, which escapes it. Colours are CSS variables of the page, so that light
and dark both work.

Charts are drawn for a width of 360 and scale with their column, so that text stays readable on a
phone and does not grow absurd on a desk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from agentc.graph.layers import Box, Edge, Point, place_boxes
from agentc_backends.results.report.collect import Collection, ExperimentJob, anchor

WIDTH = 360
_LEFT, _RIGHT, _TOP = 40, 10, 18
SERIES = 8
"""Colours that exist; further lines repeat them."""


@dataclass(frozen=True, slots=True)
class PlotLine:
    """Points (x, y) with, where known, the interval (low, high) at each and a hint to show."""

    label: str
    points: Sequence[tuple[float, float]]
    intervals: Sequence[tuple[float, float]] = ()
    hints: Sequence[str] = ()
    marked: bool = False


def line_chart(
    lines: Sequence[PlotLine],
    *,
    title: str,
    height: int = 190,
    ticks: Sequence[tuple[float, str]] = (),
    include: Sequence[float] = (),
    names: tuple[str, str] = ("", ""),
    marks: Sequence[tuple[float, str]] = (),
) -> Markup:
    """An SVG of lines over a shared x axis. `ticks` name places on it (else numbers are chosen);
    the y axis covers all points, intervals and `include`. `names` are those of both axes, `marks`
    places where something begins. The page's script shows the values under the pointer."""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    ys += [y for line in lines for interval in line.intervals for y in interval]
    frame = _Frame(
        _span(xs),
        _rounded(min([*ys, *include]), max([*ys, *include])),
        height - (62 if ticks else 26) - (14 if names[0] else 0),
    )
    parts = [frame.grid(), frame.names(ticks) if ticks else frame.numbers()]
    parts += [frame.axes(*names, height - 3 if ticks else frame.floor + 28)]
    parts += [frame.mark(*mark) for mark in marks]
    parts += [_drawn(line, number % SERIES, frame) for number, line in enumerate(lines)]
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}" data-x="{}">{}</svg>'
    ).format(WIDTH, height, title, names[0], Markup("").join(parts))


@dataclass(frozen=True, slots=True)
class _Frame:
    """Maps values to places; `floor` is the y of the x axis."""

    xs: tuple[float, float]
    ys: tuple[float, float]
    floor: int

    def x(self, value: float) -> float:
        low, high = self.xs
        return _LEFT + (value - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        low, high = self.ys
        return self.floor - (value - low) / (high - low) * (self.floor - _TOP)

    def axes(self, x: str, y: str, foot: int) -> Markup:
        """Names of the axes: one below the right end, the other above the top."""
        text = Markup('<text class="tick name" x="{}" y="{}" text-anchor="{}">{}</text>')
        below = text.format(WIDTH - _RIGHT, foot, "end", x) if x else Markup("")
        return below + (text.format(2, 10, "start", y) if y else Markup(""))

    def mark(self, value: float, name: str) -> Markup:
        """A dashed line with its name."""
        x = self.x(value)
        return Markup(
            '<line class="begin" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>'
            '<text class="tick" x="{0:.1f}" y="{1}" dx="3" dy="8">{3}</text>'
        ).format(x, _TOP, self.floor, name)

    def grid(self) -> Markup:
        """Horizontal lines with their values."""
        return Markup("").join(
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
                '<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>'
            ).format(
                _LEFT, WIDTH - _RIGHT, self.y(v), self.y(v), _LEFT - 5, self.y(v) + 3.5, _short(v)
            )
            for v in _nice(*self.ys, 4)
        )

    def numbers(self) -> Markup:
        """Numbers under the x axis, which counts steps."""
        return Markup("").join(
            Markup('<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
                self.x(v), self.floor + 15, _short(v)
            )
            for v in _nice(*self.xs, 5, least=1.0)
        )

    def names(self, ticks: Sequence[tuple[float, str]]) -> Markup:
        """Names under the x axis, slanted; the start of a long one is cut off."""
        return Markup("").join(
            Markup(
                '<text class="tick" text-anchor="end" transform="translate({:.1f},{}) rotate(-32)">'
                "{}<title>{}</title></text>"
            ).format(
                self.x(v) + 4,
                self.floor + 13,
                name if len(name) <= 18 else "…" + name[-17:],
                name,
            )
            for v, name in ticks
        )


def _drawn(line: PlotLine, colour: int, frame: _Frame) -> Markup:
    path = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in line.points)
    values = " ".join(f"{x:.6g},{y:.5g}" for x, y in line.points)
    parts = [
        Markup(
            '<polyline class="line s{}" points="{}" data-label="{}" data-values="{}">'
            "<title>{}</title></polyline>"
        ).format(colour, path, line.label, values, _told(line))
    ]
    for (x, _), (low, high) in zip(line.points, line.intervals, strict=False):
        parts.append(
            Markup('<line class="whisker s{}" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>')
            .format(colour, frame.x(x), frame.x(x), frame.y(low), frame.y(high))
        )  # fmt: skip
    if line.marked:
        for number, (x, y) in enumerate(line.points):
            hint = line.hints[number] if number < len(line.hints) else f"{line.label}: {y:.4g}"
            parts.append(
                Markup(
                    '<circle class="dot s{}" cx="{:.1f}" cy="{:.1f}" r="3.5">'
                    "<title>{}</title></circle>"
                ).format(colour, frame.x(x), frame.y(y), hint)
            )
    return Markup("").join(parts)


def _told(line: PlotLine) -> str:
    """A line in words, for who has no script."""
    ys = [y for _, y in line.points]
    return (
        f"{line.label}: first {ys[0]:.4g}, last {ys[-1]:.4g}, "
        f"least {min(ys):.4g}, most {max(ys):.4g}"
    )


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _rounded(low: float, high: float) -> tuple[float, float]:
    """A little more than the values need, from one round number to another."""
    # A line that hardly moves is not blown up until its noise fills the chart.
    least = 0.02 * max(abs(low), abs(high))
    if high - low <= least:
        middle, reach = (low + high) / 2, 2 * least or 0.5
        low, high = (middle - reach, middle + reach) if middle else (0.0, 1.0)
    for _ in range(3):  # a wider span can have a wider step
        step = _step(low, high, 4)
        low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return low, high


def _nice(low: float, high: float, count: int, least: float = 0.0) -> list[float]:
    """About `count` round numbers between two values, no closer than `least`."""
    step = max(_step(low, high, count), least)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def _step(low: float, high: float, count: int) -> float:
    raw = (high - low) / count
    power = 10 ** math.floor(math.log10(raw))
    return float(next(m for m in (1, 2, 5, 10) if m * power >= raw * 0.999) * power)


def _short(value: float) -> str:
    if abs(value) < 1e-12:
        return "0"
    if abs(value) < 0.01:
        digits, power = f"{value:.2e}".split("e")
        return f"{float(digits):g}e{int(power)}"
    return f"{value / 1000:g}k" if abs(value) >= 10_000 else f"{value:.4g}"


# The graph: layers with parents above children, boxes that link to a job's settings. Edges over
# several layers have lanes of their own, not across boxes.

_WIDTH, _HEIGHT = 164, 42
_MARGIN = 14
MOST = 300
"""More jobs than this make no picture that anybody could read."""


def draw_graph(collection: Collection) -> Markup | None:
    """The SVG, or None when there are too many jobs to draw."""
    if not collection.nodes or len(collection.nodes) > MOST:
        return None
    boxes: dict[str, Box] = {}
    edges: dict[tuple[str, str], Edge] = {}
    for node in collection.nodes:
        for _, name in node.parents:
            if name in boxes:
                edges[name, node.object] = Edge(source=name, target=node.object)
        boxes[node.object] = Box(width=_WIDTH, height=_HEIGHT)
    drawing = place_boxes(boxes, list(edges.values()))
    drawn = [_edge(way) for way in drawing.ways]
    drawn += [_box(node, drawing.middles[node.object]) for node in collection.nodes]
    width, height = drawing.width + 2 * _MARGIN, drawing.height + 2 * _MARGIN
    return Markup(
        '<svg class="graph" width="{:.0f}" height="{:.0f}" viewBox="{} {} {:.0f} {:.0f}" '
        'role="img" aria-label="Graph of the jobs">{}</svg>'
    ).format(width, height, -_MARGIN, -_MARGIN, width, height, Markup("").join(drawn))


def _edge(points: tuple[Point, ...]) -> Markup:
    path = ["M{:.0f},{:.0f}".format(*points[0])]
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        bend = f"C{x:.0f},{middle:.0f} {to_x:.0f},{middle:.0f} {to_x:.0f},{to_y:.0f}"
        path.append(f"L{to_x:.0f},{to_y:.0f}" if x == to_x else bend)
    return Markup('<path class="edge" d="{}"/>').format(" ".join(path))


def _box(node: ExperimentJob, middle: Point) -> Markup:
    left, top = middle[0] - _WIDTH / 2, middle[1] - _HEIGHT / 2
    name = node.name if len(node.name) <= 22 else node.name[:10] + "…" + node.name[-11:]
    return Markup(
        '<a class="box t-{}" href="#{}"><title>{}: {} by {}, {}</title>'
        '<rect x="{:.0f}" y="{:.0f}" width="{}" height="{}" rx="6"/>'
        '<rect class="stripe" x="{:.0f}" y="{:.0f}" width="4" height="{}" rx="2"/>'
        '<text class="name" x="{:.0f}" y="{:.0f}">{}</text>'
        '<text class="note" x="{:.0f}" y="{:.0f}">{} · {}</text></a>'
    ).format(
        node.type.lower(),
        anchor(node),
        node.name,
        node.type,
        node.manifest.get("backend", ""),
        duration(node.manifest.get("wall_s")),
        left,
        top,
        _WIDTH,
        _HEIGHT,
        left,
        top,
        _HEIGHT,
        left + 12,
        top + 18,
        name,
        left + 12,
        top + 34,
        node.kind,
        duration(node.manifest.get("wall_s")),
    )


def duration(seconds: float | None) -> str:
    """Seconds as people read them: 0.4 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if seconds is None:
        return "?"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
