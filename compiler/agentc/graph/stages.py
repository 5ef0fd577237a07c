"""StageGraph: stages, what they read, and the rounds they belong to, from a review of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentc.kinds.artifacts import METRICS
from agentc.kinds.table import kinds_where
from agentc.plan.fold import Group, fold_groups, folded_title, groups_of
from agentc.plan.review import STATE_WORDS, Item, Mark, Review
from agentc.plan.work import State

_EVALUATIONS = kinds_where(lambda kind: kind.produces is METRICS)
_MANY_INPUTS = 6
"""What reads more stages than these (a report reads all) is drawn below them, with edges only to
those that no other of them leads from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A stage, or several rounds that repeat each other (`backend` and `key` are empty then).
    `group` is the title of its round, or empty; `key` is the beginning of the key of its artifact,
    `note` what else there is to say about it."""

    id: str
    label: str
    group: str
    kind: str
    backend: str
    key: str
    mark: Mark
    state: State
    note: str = ""
    doc: str = ""

    @property
    def state_words(self) -> str:
        """`to run`, `in the store`, `not needed`; `changed, to run`."""
        words = STATE_WORDS[self.state]
        return f"changed, {words}" if self.mark == "~" else words

    @property
    def style(self) -> str:
        """The name of what a picture draws it with: `changed`, or its state."""
        return "changed" if self.mark == "~" else self.state


@dataclass(frozen=True, slots=True, kw_only=True)
class StageGraph:
    """Nodes in topological order; `reads` gives the ids that a node reads, in order; `edges` are
    those of them that are drawn (see `_MANY_INPUTS`)."""

    name: str
    nodes: tuple[GraphNode, ...]
    reads: Mapping[str, tuple[str, ...]]
    edges: tuple[tuple[str, str], ...]

    @property
    def groups(self) -> Mapping[str, Sequence[GraphNode]]:
        """The nodes by the title of their group, empty for those of none, in order."""
        found: dict[str, list[GraphNode]] = {}
        for node in self.nodes:
            found.setdefault(node.group, []).append(node)
        return found


def stage_graph(review: Review, *, every: bool = False, picture: bool = False) -> StageGraph:
    """The graph of a review. Unless `every`, four or more rounds in which the same happens become
    the first of them and one node for the others, and in a `picture` many evaluations that the same
    stages read become one node."""
    groups = groups_of(review)
    nodes: dict[str, GraphNode] = {}
    node_of: dict[str, str] = {}
    for group in groups if every else fold_groups(groups):
        if group.is_folded:
            node = _folded(group)
            nodes[node.id] = node
            node_of |= {item.id: node.id for item in group.items}
            continue
        for stage, items in _by_stage(group.items).items():
            # A cell without a round has no frame: what it begins and what it ends with would
            # stand on both sides of its rounds.
            nodes[stage] = _node(stage, items, group.title if group.round else "")
            node_of |= {item.id: stage for item in items}
    if picture and not every:
        node_of |= _join_evaluations(nodes, _reads(review, node_of), node_of)
    reads = _reads(review, node_of)
    return StageGraph(
        name=review.name,
        nodes=tuple(nodes.values()),
        reads={name: tuple(reads.get(name, ())) for name in nodes},
        edges=_drawn(tuple(nodes), reads),
    )


def _by_stage(items: Iterable[Item]) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(str(item.job["stage"]), []).append(item)
    return found


def _node(stage: str, items: list[Item], title: str) -> GraphNode:
    # The last job of a stage makes its artifact; the others lead to it.
    last = items[-1]
    leads = next((item for item in items if item.mark in "~+>"), last)
    notes = [f"{len(items)} jobs"] if len(items) > 1 else []
    notes += [f"same work as {last.twin}"] if last.twin else []
    number = last.job.get("round")
    # In the frame of a round and a cell neither needs to be said again.
    label = stage.split(f".{number}.", 1)[-1].partition("@")[0] if title else stage
    return GraphNode(
        id=stage,
        label=label,
        group=title,
        kind=str(last.job["kind"]),
        backend=str(last.job["backend"]),
        key=str(last.job["key"])[:8],
        mark=leads.mark,
        state=leads.state,
        note=", ".join(notes),
    )


def _folded(group: Group) -> GraphNode:
    title = folded_title(group)
    leads = next((item for item in group.items if item.mark in "~+>"), group.items[-1])
    return GraphNode(
        id=title,
        label=title,
        group="",
        kind="rounds" if group.round else "cells",
        backend="",
        key="",
        mark=leads.mark,
        state=leads.state,
        note=f"as the one before, {len(group.items)} jobs",
    )


def _join_evaluations(
    nodes: dict[str, GraphNode], reads: Mapping[str, Mapping[str, None]], node_of: Mapping[str, str]
) -> dict[str, str]:
    """Put one node in the place of the last of many evaluations that the same stages read, and give
    the new nodes of the jobs concerned: a table of twenty rows is twenty boxes side by side."""
    readers: dict[str, set[str]] = {}
    for reader, parents in reads.items():
        for parent in parents:
            readers.setdefault(parent, set()).add(reader)
    alike: dict[tuple[object, ...], list[GraphNode]] = {}
    for node in nodes.values():
        if node.kind in _EVALUATIONS:
            read_by = frozenset(readers.get(node.id, ()))
            look = (node.group, node.backend, node.mark, node.state, read_by)
            alike.setdefault(look, []).append(node)
    joined: dict[str, str] = {}
    for members in alike.values():
        if len(members) > _MANY_INPUTS:
            first, last = members[0], members[-1]
            node = replace(
                last,
                id=f"{first.id} to {last.id}",
                label=f"{len(members)} evaluations",
                backend="",
                key="",
                note=f"{first.label} to {last.label}",
            )
            joined |= dict.fromkeys((each.id for each in members), node.id)
            _replace(nodes, members, node)
    return {job: joined[name] for job, name in node_of.items() if name in joined}


def _replace(nodes: dict[str, GraphNode], members: Sequence[GraphNode], node: GraphNode) -> None:
    gone = {each.id for each in members[:-1]}
    kept = [node if each is members[-1] else each for each in nodes.values() if each.id not in gone]
    nodes.clear()
    nodes.update((each.id, each) for each in kept)


def _reads(review: Review, node_of: Mapping[str, str]) -> dict[str, dict[str, None]]:
    maker = {item.object: item.id for item in reversed(review.items)}
    reads: dict[str, dict[str, None]] = {}
    for item in review.items:
        node = node_of[item.id]
        for names in item.job["inputs"].values():
            for name in names:
                parent = node_of[maker[name]]
                if parent != node:
                    reads.setdefault(node, {})[parent] = None
    return reads


def _drawn(
    order: tuple[str, ...], reads: Mapping[str, Mapping[str, None]]
) -> tuple[tuple[str, str], ...]:
    """The edges, without those of readers of many that another of their edges leads to."""
    above: dict[str, set[str]] = {}
    edges: list[tuple[str, str]] = []
    for name in order:
        parents = [parent for parent in reads.get(name, ()) if parent in above]
        above[name] = set(parents).union(*(above[parent] for parent in parents))
        if len(parents) > _MANY_INPUTS:
            implied = set().union(*(above[parent] for parent in parents))
            parents = [parent for parent in parents if parent not in implied]
        edges += [(parent, name) for parent in parents]
    return tuple(edges)
