"""Layered placement of boxes (Sugiyama, Tagawa and Toda 1981): layers by longest path, order by the
mean place of neighbours, places that keep edges straight.

Boxes may have any size, and an edge may leave or enter away from the middle of a box: a box can
stand for a whole drawing with openings of its own. `agentc.graph` draws plans by it; it lies here
because the program that writes reports, which draws jobs, has the runtime alone.
"""

# Python 3.8 knows neither `zip(strict=)` nor `pairwise`.
# ruff: noqa: B905, RUF007
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

Point = tuple[float, float]

_SWEEPS = 12
_LANE = 14.0
_GAP = 18.0
_COLUMN_PULL = 24.0
_PULLS = (4.0, 1.0, 8.0)
"""How much an edge wants to be straight: between boxes, between a box and a lane, along a lane."""


@dataclass(frozen=True)
class Box:
    """What is placed. `rank` -1 or 1 holds it in the first or the last layer."""

    width: float
    height: float
    rank: int = 0


@dataclass(frozen=True)
class Edge:
    """From a box to another by id; `leaves` and `enters` are the distances of its ends from the
    middles of the boxes."""

    source: str
    target: str
    leaves: float = 0.0
    enters: float = 0.0


@dataclass(frozen=True)
class Drawing:
    """Middles of the boxes by id, and the way of each edge: its points from the bottom of one box
    to the top of the other, in the order of the edges."""

    width: float
    height: float
    middles: Mapping[str, Point]
    ways: tuple[tuple[Point, ...], ...]


class _Tie(NamedTuple):
    """A neighbour by number: where the edge meets this place, where it meets the neighbour, and
    how much it pulls."""

    other: int
    own: float
    theirs: float
    pull: float


@dataclass
class _Place:
    width: float
    height: float
    layer: int
    x: float = 0.0
    above: list[_Tie] = field(default_factory=list)
    below: list[_Tie] = field(default_factory=list)


def place_boxes(
    boxes: Mapping[str, Box],
    edges: Sequence[Edge],
    columns: Sequence[tuple[str, str]] = (),
    gap_y: float = 34,
) -> Drawing:
    """Place boxes so that edges lead downwards. The ids stand in topological order; `columns` are
    pairs that are best right above each other."""
    layer_of = _layers(boxes, edges)
    number = {name: n for n, name in enumerate(boxes)}
    places = [_Place(box.width, box.height, layer_of[name]) for name, box in boxes.items()]
    trunks = _trunks(edges, layer_of)
    lanes: dict[tuple[object, int], int] = {}
    routes = [_route(edge, trunk, number, places, lanes) for edge, trunk in zip(edges, trunks)]
    _connect(edges, routes, places)
    for upper, lower in columns:
        places[number[upper]].below.append(_Tie(number[lower], 0.0, 0.0, _COLUMN_PULL))
        places[number[lower]].above.append(_Tie(number[upper], 0.0, 0.0, _COLUMN_PULL))
    rows: list[list[int]] = [[] for _ in range(1 + max((p.layer for p in places), default=-1))]
    for n, place in enumerate(places):
        rows[place.layer].append(n)
    _order(rows, places)
    _align(rows, places)
    left = min((p.x - p.width / 2 for p in places), default=0.0)
    tops: list[float] = []
    y = 0.0
    for row in rows:
        tops.append(y)
        y += max(places[n].height for n in row) + gap_y
    for place in places:
        place.x -= left
    heights = [max(places[n].height for n in row) for row in rows]
    return Drawing(
        width=max((p.x + p.width / 2 for p in places), default=0.0),
        height=max(0.0, y - gap_y),
        middles={
            name: (places[n].x, tops[places[n].layer] + places[n].height / 2)
            for name, n in number.items()
        },
        ways=tuple(_way(edge, route, places, tops, heights) for edge, route in zip(edges, routes)),
    )


def _layers(boxes: Mapping[str, Box], edges: Sequence[Edge]) -> dict[str, int]:
    """Longest paths; then whatever nothing leads to moves down to what it leads to."""
    into: dict[str, list[str]] = {name: [] for name in boxes}
    out: dict[str, list[str]] = {name: [] for name in boxes}
    for edge in edges:
        into[edge.target].append(edge.source)
        out[edge.source].append(edge.target)
    first = 1 if any(box.rank < 0 for box in boxes.values()) else 0
    layer: dict[str, int] = {}
    for name, box in boxes.items():
        lowest = max((layer[parent] + 1 for parent in into[name]), default=first)
        layer[name] = 0 if box.rank < 0 else max(first, lowest)
    for name in reversed(tuple(boxes)):
        if not into[name] and boxes[name].rank == 0 and out[name]:
            layer[name] = min(layer[child] for child in out[name]) - 1
    last = max((layer[name] for name, box in boxes.items() if box.rank <= 0), default=0)
    if any(box.rank > 0 for box in boxes.values()):
        layer.update({name: last + 1 for name, box in boxes.items() if box.rank > 0})
    return layer


def _trunks(edges: Sequence[Edge], layer_of: Mapping[str, int]) -> list[object]:
    """By edge: which others it shares lanes with. Long edges into one box, or out of one, run
    together as far as they can: forty evaluations that one table reads are one line."""
    long = [e for e in edges if layer_of[e.target] - layer_of[e.source] > 1]
    into = Counter((e.target, e.enters) for e in long)
    out = Counter((e.source, e.leaves) for e in long)
    return [
        ("into", e.target, e.enters)
        if into[e.target, e.enters] >= out[e.source, e.leaves]
        else ("out", e.source, e.leaves)
        for e in edges
    ]


def _route(
    edge: Edge,
    trunk: object,
    number: Mapping[str, int],
    places: list[_Place],
    lanes: dict[tuple[object, int], int],
) -> list[int]:
    """The places that an edge goes through, with lanes in the layers between."""
    route = [number[edge.source]]
    end = number[edge.target]
    for layer in range(places[route[0]].layer + 1, places[end].layer):
        lane = lanes.setdefault((trunk, layer), len(places))
        if lane == len(places):
            places.append(_Place(_LANE, 0.0, layer))
        route.append(lane)
    route.append(end)
    return route


def _connect(
    edges: Sequence[Edge], routes: Sequence[Sequence[int]], places: Sequence[_Place]
) -> None:
    """Tell each place its neighbours, each once."""
    known: set[tuple[int, int, float, float]] = set()
    for edge, route in zip(edges, routes):
        for upper, lower in zip(route, route[1:]):
            leaves = edge.leaves if upper == route[0] else 0.0
            enters = edge.enters if lower == route[-1] else 0.0
            if (upper, lower, leaves, enters) in known:
                continue
            known.add((upper, lower, leaves, enters))
            lanes = (places[upper].height == 0) + (places[lower].height == 0)
            pull = _PULLS[lanes]
            places[upper].below.append(_Tie(lower, leaves, enters, pull))
            places[lower].above.append(_Tie(upper, enters, leaves, pull))


def _order(rows: list[list[int]], places: list[_Place]) -> None:
    """Sort each layer by where its neighbours are, down and up in turn; the best order stays."""
    best, fewest = [list(row) for row in rows], float("inf")
    for sweep in range(_SWEEPS):
        for row in rows:
            _pack(row, places)
        length = sum(
            abs(places[n].x + own - places[other].x - theirs)
            for row in rows
            for n in row
            for other, own, theirs, _ in places[n].below
        )
        crossings = sum(_crossings(row, places) for row in rows) + length * 1e-6
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
        down = sweep % 2 == 0
        for row in rows if down else rows[::-1]:
            ties = {n: places[n].above if down else places[n].below for n in row}
            wanted = {n: _wanted(places[n], places, ties[n]) for n in row}
            row.sort(key=lambda n: wanted[n])
            _pack(row, places)
    for row, kept in zip(rows, best):
        row[:] = kept
        _pack(row, places)


def _wanted(place: _Place, places: list[_Place], near: Sequence[_Tie]) -> float:
    """Where its neighbours want a place to be."""
    if not near:
        return place.x
    sums = sum((places[tie.other].x + tie.theirs - tie.own) * tie.pull for tie in near)
    return sums / sum(tie.pull for tie in near)


def _pack(row: list[int], places: list[_Place]) -> None:
    """Side by side around 0."""
    between = sum(_gap(places[a], places[b]) for a, b in zip(row, row[1:]))
    x = -(sum(places[n].width for n in row) + between) / 2
    for n, after in zip_longest(row, row[1:]):
        places[n].x = x + places[n].width / 2
        x += places[n].width
        x += 0.0 if after is None else _gap(places[n], places[after])


def _gap(left: _Place, right: _Place) -> float:
    """Lanes may lie close to each other."""
    return 0.0 if left.height == 0 and right.height == 0 else _GAP


def _crossings(row: list[int], places: list[_Place]) -> int:
    """Crossings of the edges that leave a layer."""
    ends = sorted(
        (places[n].x + own, places[other].x + theirs)
        for n in row
        for other, own, theirs, _ in places[n].below
    )
    return sum(1 for i, (x, y) in enumerate(ends) for x2, y2 in ends[i + 1 :] if x < x2 and y > y2)


def _align(rows: list[list[int]], places: list[_Place]) -> None:
    """Move each place towards its neighbours, as far as the order allows."""
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else rows[::-1]:
            wanted, weights = [], []
            for n in row:
                place = places[n]
                near = place.above if down else place.below
                if sweep >= _SWEEPS // 2:
                    near = [*place.above, *place.below]
                wanted.append(_wanted(place, places, near))
                weights.append(sum(tie.pull for tie in near) or 0.1)
            _spread(row, wanted, weights, places)


def _spread(
    row: list[int], wanted: list[float], weights: list[float], places: list[_Place]
) -> None:
    """The places nearest to the wanted ones (least squares) that keep order and gaps: pooling of
    adjacent violators."""
    offsets = [0.0]
    for left, right in zip(row, row[1:]):
        between = _gap(places[left], places[right])
        offsets.append(offsets[-1] + (places[left].width + places[right].width) / 2 + between)
    blocks: list[tuple[float, float, int]] = []
    for want, offset, weight in zip(wanted, offsets, weights):
        mean, heavy, count = want - offset, weight, 1
        while blocks and blocks[-1][0] > mean:
            other, weigh, size = blocks.pop()
            mean = (mean * heavy + other * weigh) / (heavy + weigh)
            heavy, count = heavy + weigh, count + size
        blocks.append((mean, heavy, count))
    index = 0
    for mean, _, count in blocks:
        for _ in range(count):
            places[row[index]].x = mean + offsets[index]
            index += 1


def _way(
    edge: Edge, route: list[int], places: list[_Place], tops: list[float], heights: list[float]
) -> tuple[Point, ...]:
    first, last = places[route[0]], places[route[-1]]
    points = [(first.x + edge.leaves, tops[first.layer] + first.height)]
    if first.height < heights[first.layer]:
        points.append((points[0][0], tops[first.layer] + heights[first.layer]))
    for n in route[1:-1]:
        lane = places[n]
        points.append((lane.x, tops[lane.layer]))
        points.append((lane.x, tops[lane.layer] + heights[lane.layer]))
    points.append((last.x + edge.enters, tops[last.layer]))
    return tuple(points)
