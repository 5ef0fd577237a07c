"""The graph for a terminal: one line for each stage, with what it reads, by round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentc.graph.stages import GraphNode, StageGraph
from agentc.text import some

_MOST_READ = 4


def graph_text(graph: StageGraph, headline: str) -> str:
    """A headline, then the stages in topological order."""
    return "\n".join([headline, "", *_rows(graph)]) + "\n"


def _rows(graph: StageGraph) -> Iterator[str]:
    labels = {node.id: node.label for node in graph.nodes}
    groups = {node.id: node.group for node in graph.nodes}
    rows: list[tuple[str, ...] | str] = []
    title = ""
    for node in graph.nodes:
        if node.group and node.group != title:
            rows.append(f"  {node.group}")
        title = node.group
        reads = graph.reads[node.id]
        # In its own round a stage is called as there.
        names = [labels[r] if groups[r] == node.group else r for r in reads]
        rows.append(_row(node, names))
    cells = [row for row in rows if isinstance(row, tuple)]
    widths = [max((len(row[n]) for row in cells), default=0) for n in range(5)]
    for row in rows:
        if isinstance(row, str):
            yield row
        else:
            yield "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()


def _row(node: GraphNode, reads: Sequence[str]) -> tuple[str, ...]:
    indent = "    " if node.group else "  "
    words = some(reads, _MOST_READ)
    notes = [f"<- {words}" if words else "", node.note if not node.backend else ""]
    about = "  ".join(note for note in notes if note)
    return (f"{indent}{node.mark} {node.label}", node.backend, node.key, node.state_words, about)
