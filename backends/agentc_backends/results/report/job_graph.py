"""The graph of a report's jobs as SVG: boxes that link to a job's settings, with the time that it
took, those of a round in a frame; texts are escaped by Markup."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from agentc.graph.layers import Point
from agentc.graph.layout import HEIGHT, WIDTH, EdgeLine, Frame, lay_out
from agentc_backends.results.report.collect import Collection, ExperimentJob, anchor
from agentc_backends.results.report.drawings import duration

_MARGIN = 14
_SHRINKS = 0.75
"""A wide graph becomes this narrow before it scrolls."""
_LONGEST = 27
"""Letters of a name that a box has room for."""
MOST = 300
"""More jobs than this make no picture that anybody could read."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A job by its object, in its round."""

    id: str
    group: str
    job: ExperimentJob


@dataclass(frozen=True, slots=True)
class _Graph:
    nodes: tuple[_Node, ...]
    edges: tuple[tuple[str, str], ...]


def draw_graph(collection: Collection) -> Markup | None:
    """The SVG, or None when there are too many jobs to draw."""
    if not collection.nodes or len(collection.nodes) > MOST:
        return None
    nodes = tuple(_Node(job.object, round_of(job), job) for job in collection.nodes)
    drawn = {node.id for node in nodes}
    edges = tuple(
        dict.fromkeys(
            (name, node.id) for node in nodes for _, name in node.job.parents if name in drawn
        )
    )
    layout = lay_out(_Graph(nodes, edges))
    framed = {frame.title for frame in layout.frames}
    parts = [_frame(frame) for frame in layout.frames]
    parts += [_edge(line) for line in layout.lines]
    parts += [_box(node, layout.corners[node.id], node.group in framed) for node in nodes]
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    return Markup(
        '<svg class="graph" width="{:.0f}" height="{:.0f}" viewBox="{} {} {:.0f} {:.0f}" '
        'style="min-width:{:.0f}px" role="img" aria-label="Graph of the jobs">{}</svg>'
    ).format(
        width, height, -_MARGIN, -_MARGIN, width, height, _SHRINKS * width,
        Markup("").join(parts),
    )  # fmt: skip


def round_of(job: ExperimentJob) -> str:
    """`eto, round 2` or `seed=1: eto, round 2`; "" outside of rounds."""
    if job.round is None:
        return ""
    path, _, cell = job.name.partition(":")[0].partition("@")
    title = f"{path.partition(f'.{job.round}.')[0]}, round {job.round}"
    return f"{cell}: {title}" if cell else title


def _frame(frame: Frame) -> Markup:
    return Markup(
        '<rect class="frame" x="{:.0f}" y="{:.0f}" width="{:.0f}" height="{:.0f}" rx="8"/>'
        '<text class="frame-title" x="{:.0f}" y="{:.0f}">{}</text>'
    ).format(
        frame.x, frame.y, frame.width, frame.height, frame.x + 14, frame.y + 20, frame.title
    )  # fmt: skip


def _edge(line: EdgeLine) -> Markup:
    path = ["M{:.0f},{:.0f}".format(*line.points[0])]
    for (x, y), (to_x, to_y) in pairwise(line.points):
        middle = (y + to_y) / 2
        bend = f"C{x:.0f},{middle:.0f} {to_x:.0f},{middle:.0f} {to_x:.0f},{to_y:.0f}"
        path.append(f"L{to_x:.0f},{to_y:.0f}" if x == to_x else bend)
    return Markup('<path class="edge" d="{}"/>').format(" ".join(path))


def _box(node: _Node, corner: Point, framed: bool) -> Markup:
    job, (left, top) = node.job, corner
    took = duration(job.manifest.get("wall_s"))
    return Markup(
        '<a class="box t-{}" href="#{}"><title>{}: {} by {}, {}</title>'
        '<rect x="{:.0f}" y="{:.0f}" width="{:.0f}" height="{:.0f}" rx="6"/>'
        '<rect class="stripe" x="{:.0f}" y="{:.0f}" width="4" height="{:.0f}" rx="2"/>'
        '<text class="name" x="{:.0f}" y="{:.0f}">{}</text>'
        '<text class="note" x="{:.0f}" y="{:.0f}">{} · {}</text></a>'
    ).format(
        job.type.lower(), anchor(job), job.name, job.type, job.manifest.get("backend", ""), took,
        left, top, WIDTH, HEIGHT, left, top, HEIGHT,
        left + 12, top + 19, _label(job, framed), left + 12, top + 36, job.kind, took,
    )  # fmt: skip


def _label(job: ExperimentJob, framed: bool) -> str:
    """Its name; in a frame without what the frame's title says."""
    name = job.name
    if framed:
        path, at, rest = name.partition("@")
        _, mark, inner = rest.partition(":")
        name = path.partition(f".{job.round}.")[2] + (mark + inner if at else "")
    half = _LONGEST // 2
    return name if len(name) <= _LONGEST else f"{name[:half]}…{name[-half:]}"
