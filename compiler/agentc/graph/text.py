"""The graph as text: for a terminal, in Graphviz's language and in Mermaid's."""

from __future__ import annotations

import json
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


# The graph in Graphviz's language, for those who lay it out themselves.


def dot_text(graph: StageGraph) -> str:
    """A digraph with a cluster for each round."""
    return "\n".join(_dot_lines(graph)) + "\n"


def _dot_lines(graph: StageGraph) -> Iterator[str]:
    yield f"digraph {_dot_string(graph.name)} {{"
    yield "  node [shape=box, fontname=Helvetica];"
    for number, (title, nodes) in enumerate(graph.groups.items()):
        if title:
            yield f"  subgraph cluster_{number} {{ label={_dot_string(title)};"
        indent = "    " if title else "  "
        for node in nodes:
            about = f"{node.backend} {node.key}".strip() or node.note
            label = _dot_string(f"{node.label}\n{about}\n{node.state_words}")
            yield f"{indent}{_dot_string(node.id)} [label={label}];"
        if title:
            yield "  }"
    for source, target in graph.edges:
        yield f"  {_dot_string(source)} -> {_dot_string(target)};"
    yield "}"


def _dot_string(text: str) -> str:
    # JSON's escapes of quotes, backslashes and line breaks are those of DOT.
    return json.dumps(text, ensure_ascii=False)


# The graph in Mermaid's language, which GitHub and sites of documentation draw where they find it
# in a page.

MOST_EDGES = 500
"""Arrows that Mermaid draws where nobody has set `maxEdges`; one more, and it draws nothing."""

_PLAIN = frozenset(" .,_@=+-/()")
# Lines only: fills and texts are the theme's, which is light or dark.
_CLASSES = {
    "changed": "stroke:#c2570c,stroke-width:2px",
    "run": "stroke:#1f5fbf",
    "cached": "stroke:#1d7a46",
    "unneeded": "stroke:#a3abb6,stroke-dasharray:4",
}


def mermaid_text(graph: StageGraph) -> str:
    """A flowchart with a subgraph for each round. Keys of artifacts are left out: a picture in a
    page changes when the stages or their state do."""
    return "\n".join(_mermaid_lines(graph)) + "\n"


def _mermaid_lines(graph: StageGraph) -> Iterator[str]:
    yield from (
        "---",
        f"title: {json.dumps(graph.name, ensure_ascii=False)}",
        "---",
        "flowchart TD",
    )
    # Numbers stand for stages: `end` and other words of the language are no names there.
    names = {node.id: f"s{number}" for number, node in enumerate(graph.nodes)}
    for number, (title, nodes) in enumerate(graph.groups.items()):
        if title:
            yield f"  subgraph g{number}[{_mermaid_string(title)}]"
        indent = "    " if title else "  "
        for node in nodes:
            rows = (node.label, node.backend or node.note, node.state_words)
            label = "<br>".join(_escaped(row) for row in rows if row)
            yield f'{indent}{names[node.id]}["{label}"]:::{node.style}'
        if title:
            yield "  end"
    for source, target in graph.edges:
        yield f"  {names[source]} --> {names[target]}"
    used = {node.style for node in graph.nodes}
    for name, style in _CLASSES.items():
        if name in used:
            yield f"  classDef {name} {style}"


def _mermaid_string(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Mermaid has a number for each character that could mean something, even in quotes: to itself
    (`"`, `#`, backticks, `%%`), or to the HTML that it makes."""
    return "".join(char if char.isalnum() or char in _PLAIN else f"#{ord(char)};" for char in text)
