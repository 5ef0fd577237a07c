"""The graph in Graphviz's language, for those who lay it out themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agentc.graph.stages import StageGraph


def dot_text(graph: StageGraph) -> str:
    """A digraph with a cluster for each round."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: StageGraph) -> Iterator[str]:
    yield f"digraph {_quoted(graph.name)} {{"
    yield "  node [shape=box, fontname=Helvetica];"
    for number, (title, nodes) in enumerate(graph.groups.items()):
        if title:
            yield f"  subgraph cluster_{number} {{ label={_quoted(title)};"
        indent = "    " if title else "  "
        for node in nodes:
            about = f"{node.backend} {node.key}".strip() or node.note
            label = _quoted(f"{node.label}\n{about}\n{node.state_words}")
            yield f"{indent}{_quoted(node.id)} [label={label}];"
        if title:
            yield "  }"
    for source, target in graph.edges:
        yield f"  {_quoted(source)} -> {_quoted(target)};"
    yield "}"


def _quoted(text: str) -> str:
    # JSON's escapes of quotes, backslashes and line breaks are those of DOT.
    return json.dumps(text, ensure_ascii=False)
