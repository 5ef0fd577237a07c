"""Placement: boxes lie apart, rounds hold their stages, edges lead down from box to box."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from agentc.graph.layout import HEIGHT, WIDTH, Layout, lay_out
from agentc.graph.stages import GraphNode, StageGraph

SLACK = 0.01


def node(number: int, group: str) -> GraphNode:
    return GraphNode(
        id=f"s{number}",
        label=f"s{number}",
        group=group,
        kind="sft",
        backend="toy",
        key="",
        mark="+",
        state="run",
    )


@st.composite
def graphs(draw: st.DrawFn) -> StageGraph:
    """Random graphs; some of them with rounds that no order of whole rounds fits."""
    count = draw(st.integers(1, 16))
    group = st.sampled_from(["", "", "round 1", "round 2", "round 3"])
    nodes = tuple(node(n, draw(group)) for n in range(count))
    edges = []
    for n in range(1, count):
        for parent in draw(st.lists(st.integers(0, n - 1), max_size=4, unique=True)):
            edges.append((f"s{parent}", f"s{n}"))
    return StageGraph(name="toy", nodes=nodes, reads={}, edges=tuple(edges))


def overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return (
        a[0] < b[0] + b[2] - SLACK
        and b[0] < a[0] + a[2] - SLACK
        and a[1] < b[1] + b[3] - SLACK
        and b[1] < a[1] + a[3] - SLACK
    )


def rectangles(layout: Layout) -> dict[str, tuple[float, float, float, float]]:
    return {name: (x, y, WIDTH, HEIGHT) for name, (x, y) in layout.corners.items()}


@given(graphs())
def test_every_stage_has_a_place_of_its_own_inside(graph: StageGraph) -> None:
    layout = lay_out(graph)
    boxes = rectangles(layout)
    assert set(boxes) == {node.id for node in graph.nodes}
    for a, b in combinations(boxes.values(), 2):
        assert not overlap(a, b)
    for x, y, width, height in boxes.values():
        assert x >= -SLACK
        assert y >= -SLACK
        assert x + width <= layout.width + SLACK
        assert y + height <= layout.height + SLACK


@given(graphs())
def test_frames_hold_their_stages_and_no_others(graph: StageGraph) -> None:
    layout = lay_out(graph)
    boxes = rectangles(layout)
    for frame in layout.frames:
        area = (frame.x, frame.y, frame.width, frame.height)
        inside = {name for name, box in boxes.items() if overlap(area, box)}
        assert inside == {node.id for node in graph.nodes if node.group == frame.title}
    for a, b in combinations(layout.frames, 2):
        assert not overlap((a.x, a.y, a.width, a.height), (b.x, b.y, b.width, b.height))


@given(graphs())
def test_lines_lead_down_and_cross_no_box(graph: StageGraph) -> None:
    layout = lay_out(graph)
    boxes = rectangles(layout)
    for line in layout.lines:
        for (x1, y1), (x2, y2) in pairwise(line.points):
            assert y2 >= y1 - SLACK
            if abs(x1 - x2) < SLACK:
                # A straight piece may lie beside boxes; a bent one lies between two layers.
                for box in boxes.values():
                    assert not overlap((x1, y1 + 1, 0.001, y2 - y1 - 2), box)


@given(graphs())
def test_every_edge_is_drawn_from_box_to_box(graph: StageGraph) -> None:
    """Following the lines downwards from a stage, its readers are reached."""
    layout = lay_out(graph)
    after: dict[tuple[float, float], set[tuple[float, float]]] = {}
    for line in layout.lines:
        rounded = [(round(x, 3), round(y, 3)) for x, y in line.points]
        for upper, lower in pairwise(rounded):
            after.setdefault(upper, set()).add(lower)

    def reached(point: tuple[float, float]) -> set[tuple[float, float]]:
        found, pending = set(), [point]
        while pending:
            for lower in after.get(pending.pop(), ()):
                if lower not in found:
                    found.add(lower)
                    pending.append(lower)
        return found

    for source, target in graph.edges:
        x, y = layout.corners[source]
        to_x, to_y = layout.corners[target]
        end = (round(to_x + WIDTH / 2, 3), round(to_y, 3))
        assert end in reached((round(x + WIDTH / 2, 3), round(y + HEIGHT, 3)))
