"""Lays the jobs out in layers and draws them as an SVG: parents above children, boxes that link to
the job's settings. Edges over several layers go through places of their own, not across boxes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from markupsafe import Markup

from agentc_backends.report_html.collect import Collection, Node
from agentc_backends.report_html.tables import anchor

_WIDTH, _HEIGHT = 164, 42
_GAP_X, _GAP_Y = 14, 34
_LANE = 18
_SWEEPS = 6
MOST = 300
"""More jobs than this make no picture that anybody could read."""


@dataclass(slots=True)
class _Place:
    """A box, or (`node` None) the passage of an edge through a layer."""

    node: Node | None
    layer: int
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    x: float = 0.0

    @property
    def width(self) -> int:
        return _LANE if self.node is None else _WIDTH


def draw_graph(collection: Collection) -> Markup | None:
    """The SVG, or None when there are too many jobs to draw."""
    if not collection.nodes or len(collection.nodes) > MOST:
        return None
    places, edges = _places(collection)
    layers = _arranged(places)
    width = max(_layer_width(layer, places) for layer in layers) + 2 * _GAP_X
    for layer in layers:
        x = (width - _layer_width(layer, places)) / 2
        for number in layer:
            places[number].x = x + places[number].width / 2
            x += places[number].width + _GAP_X
    height = len(layers) * (_HEIGHT + _GAP_Y) - _GAP_Y + 2 * _GAP_X
    drawn = [_edge([places[i] for i in route]) for route in edges]
    drawn += [_box(place) for place in places if place.node is not None]
    return Markup(
        '<svg class="graph" width="{:.0f}" height="{}" viewBox="0 0 {:.0f} {}" role="img" '
        'aria-label="Graph of the jobs">{}</svg>'
    ).format(width, height, width, height, Markup("").join(drawn))


def _places(collection: Collection) -> tuple[list[_Place], list[list[int]]]:
    """Places by number, and the route of every edge through them."""
    places: list[_Place] = []
    number_of: dict[str, int] = {}
    for node in collection.nodes:
        parents = [name for _, name in node.parents if name in number_of]
        layer = 1 + max((places[number_of[name]].layer for name in parents), default=-1)
        number_of[node.object] = len(places)
        places.append(_Place(node, layer))
    edges = []
    for node in collection.nodes:
        end = number_of[node.object]
        for name in dict.fromkeys(name for _, name in node.parents if name in number_of):
            route = [number_of[name]]
            for layer in range(places[route[0]].layer + 1, places[end].layer):
                places.append(_Place(None, layer))
                route.append(len(places) - 1)
            route.append(end)
            for upper, lower in pairwise(route):
                places[upper].below.append(lower)
                places[lower].above.append(upper)
            edges.append(route)
    return places, edges


def _arranged(places: list[_Place]) -> list[list[int]]:
    """Places by layer, ordered by the mean position of their neighbours (Sugiyama's heuristic)."""
    layers: list[list[int]] = [[] for _ in range(1 + max(place.layer for place in places))]
    for number, place in enumerate(places):
        layers[place.layer].append(number)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            at = {n: i / max(len(row) - 1, 1) for row in layers for i, n in enumerate(row)}
            layer.sort(key=lambda n: _mean(places[n].above if down else places[n].below, at, n))
    return layers


def _mean(neighbours: list[int], at: Mapping[int, float], own: int) -> float:
    return sum(at[n] for n in neighbours) / len(neighbours) if neighbours else at[own]


def _layer_width(layer: list[int], places: list[_Place]) -> float:
    return sum(places[n].width for n in layer) + _GAP_X * (len(layer) - 1)


def _top(layer: int) -> float:
    return _GAP_X + layer * (_HEIGHT + _GAP_Y)


def _edge(route: list[_Place]) -> Markup:
    x, y = route[0].x, _top(route[0].layer) + _HEIGHT
    path = [f"M{x:.0f},{y:.0f}"]
    for place in route[1:]:
        top = _top(place.layer)
        middle = (y + top) / 2
        path.append(f"C{x:.0f},{middle:.0f} {place.x:.0f},{middle:.0f} {place.x:.0f},{top:.0f}")
        x, y = place.x, top
        if place.node is None:
            y = top + _HEIGHT
            path.append(f"L{x:.0f},{y:.0f}")
    return Markup('<path class="edge" d="{}"/>').format(" ".join(path))


def _box(place: _Place) -> Markup:
    node = place.node
    assert node is not None
    left, top = place.x - _WIDTH / 2, _top(place.layer)
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
