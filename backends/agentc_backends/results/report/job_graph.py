"""The graph of a report's jobs as SVG: boxes that link to a job's settings, with the time that it
took; texts are escaped by Markup."""

from __future__ import annotations

from itertools import pairwise

from markupsafe import Markup

from agentc.graph.layers import Box, Edge, Point, place_boxes
from agentc_backends.results.report.collect import Collection, ExperimentJob, anchor
from agentc_backends.results.report.drawings import duration

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
