"""The graph as a page that opens alone: the picture, and under it a table of all stages."""

from __future__ import annotations

from html import escape

from agentc.graph.stages import GraphNode, StageGraph
from agentc.graph.svg import svg_text

_STYLE = """\
:root { color-scheme: light dark; --back: #ffffff; --text: #1b2027; --quiet: #5c6673;
  --line: #d9dde3; }
@media (prefers-color-scheme: dark) { :root { --back: #14171c; --text: #e5e9ef; --quiet: #9aa5b3;
  --line: #343b45; } }
body { margin: 0 auto; padding: 16px; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
.wide { overflow-x: auto; }
.wide svg { display: block; margin: 0 auto; max-width: none; }
table { border-collapse: collapse; margin: 24px auto; font-size: 14px; }
th, td { padding: 5px 18px 5px 0; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top; }
thead th { color: var(--quiet); font-weight: 500; }
tbody th { font-weight: 600; white-space: nowrap; }
tr:target { outline: 2px solid var(--quiet); }
td.reads { color: var(--quiet); max-width: 34em; }
code { font-size: 13px; }
"""


def page_text(graph: StageGraph, headline: str) -> str:
    """One HTML file without references to anything outside it."""
    rows = "\n".join(_row(node, graph) for node in graph.nodes)
    name = escape(graph.name)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}: stages</title>
<style>{_STYLE}</style>
</head>
<body>
<div class="wide">
{svg_text(graph, headline, links=True)}</div>
<div class="wide">
<table>
<thead><tr><th>stage</th><th>kind</th><th>backend</th><th>key</th><th>state</th><th>reads</th></tr>
</thead>
<tbody>
{rows}
</tbody>
</table>
</div>
</body>
</html>
"""


def _row(node: GraphNode, graph: StageGraph) -> str:
    state = ", ".join(part for part in (node.state_words, node.note) if part)
    reads = ", ".join(graph.reads[node.id])
    return (
        f'<tr id="{escape(node.id)}"><th>{escape(node.id)}</th><td>{escape(node.kind)}</td>'
        f"<td>{escape(node.backend)}</td><td><code>{escape(node.key)}</code></td>"
        f'<td>{escape(state)}</td><td class="reads">{escape(reads)}</td></tr>'
    )
