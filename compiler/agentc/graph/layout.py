"""Places a graph with rounds: each round is a drawing of its own, which is one box in the whole.

Edges go in and out of a round through openings in its frame, so that no edge crosses a box. Plans
and reports are drawn by it: like `layers`, it imports nothing that the program of a job lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agentc.graph.layers import Box, Drawing, Edge, Point, place_boxes

WIDTH, HEIGHT = 204.0, 46.0
_PAD = 14.0
_TITLE = 22.0
_IN, _OUT = "in ", "out "


class Node(Protocol):
    """A box by its id, with the title of its round, or "" outside of rounds."""

    @property
    def id(self) -> str: ...

    @property
    def group(self) -> str: ...


class Graph(Protocol):
    """Nodes in topological order, and edges between their ids."""

    @property
    def nodes(self) -> Sequence[Node]: ...

    @property
    def edges(self) -> Sequence[tuple[str, str]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A round: its title and its rectangle."""

    title: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeLine:
    """A part of an edge, from top to bottom; `arrow` says whether it ends at a stage."""

    points: tuple[Point, ...]
    arrow: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Left upper corners of the stages by id (all are WIDTH by HEIGHT), frames, lines."""

    width: float
    height: float
    corners: Mapping[str, Point]
    frames: tuple[Frame, ...]
    lines: tuple[EdgeLine, ...]


def lay_out(graph: Graph) -> Layout:
    """Place a graph. Rounds are framed unless one both reads and feeds another by some way round
    (then no order of whole rounds exists, and stages stand freely)."""
    group_of = {node.id: node.group for node in graph.nodes if node.group}
    order = _order_of_boxes(graph, group_of)
    if order is None:
        group_of = {}
        order = [node.id for node in graph.nodes]
    rounds = {
        title: _Round.of([n for n in graph.nodes if group_of.get(n.id) == title], graph.edges)
        for title in dict.fromkeys(group_of.values())
    }
    boxes = {
        name: rounds[name].box if name in rounds else Box(width=WIDTH, height=HEIGHT)
        for name in order
    }
    edges: dict[tuple[str, str, str], Edge] = {}
    for source, target in graph.edges:
        start, end = group_of.get(source, source), group_of.get(target, target)
        if start == end:
            continue
        edges[source, start, end] = Edge(
            source=start,
            target=end,
            leaves=rounds[start].opening(_OUT + source) if start in rounds else 0.0,
            enters=rounds[end].opening(_IN + source) if end in rounds else 0.0,
        )
    # A round stands right below the one before it, wherever its policy comes from.
    columns = {(e.source, e.target) for e in edges.values() if {e.source, e.target} <= set(rounds)}
    whole = place_boxes(boxes, list(edges.values()), columns=sorted(columns))
    return _assemble(whole, rounds, list(edges.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """A round drawn by itself."""

    drawing: Drawing
    edges: tuple[Edge, ...]

    @classmethod
    def of(cls, nodes: Sequence[Node], edges: Sequence[tuple[str, str]]) -> _Round:
        inside = {node.id for node in nodes}
        boxes: dict[str, Box] = {}
        inner: dict[tuple[str, str], Edge] = {}
        for source, target in edges:
            if target in inside and source not in inside:
                boxes[_IN + source] = Box(width=8, height=0, rank=-1)
        boxes |= {node.id: Box(width=WIDTH, height=HEIGHT) for node in nodes}
        for source, target in edges:
            if target in inside:
                start = source if source in inside else _IN + source
                inner[start, target] = Edge(source=start, target=target)
            elif source in inside:
                boxes[_OUT + source] = Box(width=8, height=0, rank=1)
                inner[source, _OUT] = Edge(source=source, target=_OUT + source)
        drawn = tuple(inner.values())
        return cls(drawing=place_boxes(boxes, drawn, gap_y=26), edges=drawn)

    @property
    def box(self) -> Box:
        """Its frame in the whole."""
        drawing = self.drawing
        return Box(width=drawing.width + 2 * _PAD, height=drawing.height + 2 * _PAD + _TITLE)

    def opening(self, name: str) -> float:
        """Where an opening is, from the middle of the frame."""
        return self.drawing.middles[name][0] - self.drawing.width / 2


def _order_of_boxes(graph: Graph, group_of: Mapping[str, str]) -> list[str] | None:
    """Rounds and free stages in topological order, as they first appear; None for a circle."""
    names = list(dict.fromkeys(group_of.get(node.id, node.id) for node in graph.nodes))
    into: dict[str, set[str]] = {name: set() for name in names}
    for source, target in graph.edges:
        start, end = group_of.get(source, source), group_of.get(target, target)
        if start != end:
            into[end].add(start)
    order: list[str] = []
    while names:
        free = next((name for name in names if not into[name] & set(names)), None)
        if free is None:
            return None
        names.remove(free)
        order.append(free)
    return order


def _assemble(whole: Drawing, rounds: Mapping[str, _Round], edges: Sequence[Edge]) -> Layout:
    corners: dict[str, Point] = {}
    frames: list[Frame] = []
    lines: list[EdgeLine] = []
    bottoms: dict[str, float] = {}
    for name, (x, y) in whole.middles.items():
        if name not in rounds:
            corners[name] = (x - WIDTH / 2, y - HEIGHT / 2)
            continue
        drawing, box = rounds[name].drawing, rounds[name].box
        left, top = x - box.width / 2, y - box.height / 2
        bottoms[name] = top + box.height
        frames.append(Frame(title=name, x=left, y=top, width=box.width, height=box.height))
        right, down = left + _PAD, top + _PAD + _TITLE
        for inner, (at_x, at_y) in drawing.middles.items():
            if not inner.startswith((_IN, _OUT)):
                corners[inner] = (right + at_x - WIDTH / 2, down + at_y - HEIGHT / 2)
        for edge, way in zip(rounds[name].edges, drawing.ways, strict=True):
            points = [(right + px, down + py) for px, py in way]
            if edge.source.startswith(_IN):
                points.insert(0, (points[0][0], top))
            if edge.target.startswith(_OUT):
                points.append((points[-1][0], top + box.height))
            lines.append(EdgeLine(points=tuple(points), arrow=not edge.target.startswith(_OUT)))
    lines += [
        EdgeLine(points=way, arrow=edge.target not in rounds)
        for edge, way in zip(edges, whole.ways, strict=True)
    ]
    return Layout(
        width=whole.width,
        height=whole.height,
        corners=corners,
        frames=tuple(frames),
        # Edges that share their lanes share lines.
        lines=tuple(dict.fromkeys(lines)),
    )
