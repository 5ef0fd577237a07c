"""The graph in Mermaid's language, which GitHub and sites of documentation draw where they find it
in a page. Neighbour: `dot.py`, for Graphviz."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agentc.graph.stages import StageGraph

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
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: StageGraph) -> Iterator[str]:
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
            yield f"  subgraph g{number}[{_quoted(title)}]"
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


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Mermaid has a number for each character that could mean something, even in quotes: to itself
    (`"`, `#`, backticks, `%%`), or to the HTML that it makes."""
    return "".join(char if char.isalnum() or char in _PLAIN else f"#{ord(char)};" for char in text)
