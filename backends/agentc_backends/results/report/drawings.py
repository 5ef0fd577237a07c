"""Line charts of a report as SVG. Geometry is computed here; every text goes through Markup, which
escapes it. Colours are CSS variables of the page, so that light and dark both work.

A chart is drawn for a column and for the whole width; the page shows the one that fits. The
page's script smooths lines and changes to a log axis by `data-frame` and `data-values`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

NARROW, WIDE = 360, 1040
_LEFT, _RIGHT, _TOP = 44, 12, 18
_SLANTED_LEFT = 66
"""Room for the slanted name of the first place."""
_LETTER = 7.0
"""Width of a letter under the axis, at most."""
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
    width: int = NARROW,
) -> Markup:
    """An SVG of lines over a shared x axis. `ticks` name places on it (else numbers are chosen);
    the y axis covers all points, intervals and `include`. `names` are those of both axes, `marks`
    places where something begins. The page's script shows the values under the pointer."""
    slanted = bool(ticks) and not _fits(ticks, width)
    below = 62 if slanted else 26
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    ys += [y for line in lines for interval in line.intervals for y in interval]
    frame = _Frame(
        _span(xs),
        _rounded(min([*ys, *include]), max([*ys, *include])),
        height - below - (14 if names[0] else 0),
        width,
        _SLANTED_LEFT if slanted else _LEFT,
    )
    parts = [frame.grid(), frame.names(ticks, slanted) if ticks else frame.numbers()]
    parts += [frame.axes(*names, height - 3)]
    parts += [frame.mark(*mark) for mark in marks]
    parts += [_drawn(line, number % SERIES, frame) for number, line in enumerate(lines)]
    return Markup(
        '<svg class="chart {}" viewBox="0 0 {} {}" role="img" aria-label="{}" data-x="{}" '
        'data-frame="{:.6g} {:.6g} {} {} {} {}">{}</svg>'
    ).format(
        "whole" if width > NARROW else "column", width, height, title, names[0],
        *frame.ys, _TOP, frame.floor, frame.left, width - _RIGHT, Markup("").join(parts),
    )  # fmt: skip


def both_charts(
    lines: Sequence[PlotLine],
    *,
    title: str,
    heights: tuple[int, int] = (190, 260),
    **rest: Any,
) -> Markup:
    """The chart for the whole width, then that for a column."""
    column, whole = heights
    drawn = (
        line_chart(lines, title=title, height=whole, width=WIDE, **rest),
        line_chart(lines, title=title, height=column, **rest),
    )
    return Markup('<div class="plot">{}{}</div>').format(*drawn)


def _fits(ticks: Sequence[tuple[float, str]], width: int) -> bool:
    """Whether names stand side by side, the first and the last within the chart."""
    room = (width - _LEFT - _RIGHT) / max(1, len(ticks) - 1)
    return all(_LETTER * len(name) < room for _, name in ticks)


@dataclass(frozen=True, slots=True)
class _Frame:
    """Maps values to places; `floor` is the y of the x axis."""

    xs: tuple[float, float]
    ys: tuple[float, float]
    floor: int
    width: int
    left: int

    def x(self, value: float) -> float:
        low, high = self.xs
        return self.left + (value - low) / (high - low) * (self.width - self.left - _RIGHT)

    def y(self, value: float) -> float:
        low, high = self.ys
        return self.floor - (value - low) / (high - low) * (self.floor - _TOP)

    def axes(self, x: str, y: str, foot: int) -> Markup:
        """Names of the axes: one below the right end, the other above the top."""
        text = Markup('<text class="tick name" x="{}" y="{}" text-anchor="{}">{}</text>')
        below = text.format(self.width - _RIGHT, foot, "end", x) if x else Markup("")
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
        lines = Markup("").join(
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
                '<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>'
            ).format(
                self.left, self.width - _RIGHT, self.y(v), self.y(v), self.left - 5,
                self.y(v) + 3.5, _short(v),
            )
            for v in _nice(*self.ys, 4)
        )  # fmt: skip
        return Markup('<g class="rows">{}</g>').format(lines)

    def numbers(self) -> Markup:
        """Numbers under the x axis, which counts steps."""
        return Markup("").join(
            Markup('<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
                self.x(v), self.floor + 15, _short(v)
            )
            for v in _nice(*self.xs, 5 if self.width == NARROW else 10, least=1.0)
        )

    def names(self, ticks: Sequence[tuple[float, str]], slanted: bool) -> Markup:
        """Names under the x axis; where they need more room slanted, the start of a long one cut
        off."""
        if slanted:
            text = Markup(
                '<text class="tick" text-anchor="end" transform="translate({:.1f},{}) rotate(-32)">'
                "{}<title>{}</title></text>"
            )
            return Markup("").join(
                text.format(
                    self.x(value) + 4, self.floor + 13,
                    name if len(name) <= 18 else "…" + name[-17:], name,
                )
                for value, name in ticks
            )  # fmt: skip
        text = Markup('<text class="tick" text-anchor="{}" x="{:.1f}" y="{}">{}</text>')
        return Markup("").join(
            text.format(self._anchor(value), self.x(value), self.floor + 17, name)
            for value, name in ticks
        )

    def _anchor(self, value: float) -> str:
        """The first and the last name stay within the chart."""
        return {self.xs[0]: "start", self.xs[1]: "end"}.get(value, "middle")


def _drawn(line: PlotLine, colour: int, frame: _Frame) -> Markup:
    path = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in line.points)
    values = " ".join(f"{x:.6g},{y:.5g}" for x, y in line.points)
    parts = [
        Markup(
            '<polyline class="line s{}" points="{}" data-label="{}" data-values="{}">'
            "<title>{}</title></polyline>"
        ).format(colour, path, line.label, values, _line_text(line))
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


def _line_text(line: PlotLine) -> str:
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
