"""`agentc graph SPEC`: the stages of a spec and what they read, as text or as a picture."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import add_spec_arguments
from agentc.cli.parser import add_store_argument
from agentc.cli.spec_work import find_spec_work
from agentc.exit_codes import EXIT_USAGE

if TYPE_CHECKING:
    from agentc.graph.stages import StageGraph

HELP = "draw the stages of a spec: what reads what, by round, and what the store has"

_FORMATS = ("text", "svg", "html", "dot", "mermaid")
_ENDINGS = {
    "": "text",
    ".txt": "text",
    ".svg": "svg",
    ".html": "html",
    ".htm": "html",
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
}
_MOST_DRAWN = 400
"""Stages in a picture: more make none that anybody could read."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = "For example: agentc graph specs/quickstart.yaml -o quickstart.svg"
    add_spec_arguments(parser)
    add_store_argument(parser)
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        help="default: what the ending of FILE says, else text; dot is Graphviz's language, mermaid"
        " what GitHub draws in pages",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to write")
    parser.add_argument(
        "--all",
        action="store_true",
        help="draw every round and evaluation, also those that repeat each other",
    )


def execute(arguments: argparse.Namespace) -> int:
    """0; 1 when the spec has errors; 2 when FILE cannot be written or ends like nothing that can
    be drawn, or there is too much for a picture."""
    from agentc.backend_api import load_backends
    from agentc.graph.stages import stage_graph
    from agentc.graph.text import MOST_EDGES
    from agentc.plan.review import review_plan
    from agentc.plan.tree import headline
    from agentc.run.past import plan_before

    form = arguments.format or _form(arguments.output)
    if form is None:
        print(
            f"agentc: a graph cannot be written as `{arguments.output.suffix}`; endings:"
            f" {', '.join(ending for ending in _ENDINGS if ending)}. Graphviz makes the rest of"
            " a .dot file, such as `dot -Tpdf`",
            file=sys.stderr,
        )
        return EXIT_USAGE
    work = find_spec_work(arguments, load_backends()).work
    review = review_plan(work, plan_before(work.layout, work.document))
    graph = stage_graph(review, every=arguments.all, picture=form != "text")
    if form in ("svg", "html", "mermaid") and len(graph.nodes) > _MOST_DRAWN:
        hint = "leave out --all, or use" if arguments.all else "use"
        print(
            f"agentc: {len(graph.nodes)} stages are too many for a picture (at most {_MOST_DRAWN});"
            f" {hint} --format text or dot",
            file=sys.stderr,
        )
        return EXIT_USAGE
    if form == "mermaid" and len(graph.edges) > MOST_EDGES:
        print(
            f"agentc: {len(graph.edges)} arrows are too many for Mermaid (at most {MOST_EDGES});"
            " use --format svg or dot",
            file=sys.stderr,
        )
        return EXIT_USAGE
    text = _written(form, graph, headline(review))
    if arguments.output is None:
        print(text, end="")
        return 0
    try:
        arguments.output.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        print(f"agentc: cannot write {arguments.output}: {reason}", file=sys.stderr)
        return EXIT_USAGE
    print(f"{arguments.output}: {len(graph.nodes)} stages")
    return 0


def _form(output: Path | None) -> str | None:
    """The format that FILE's ending names; None for an ending of another format."""
    return "text" if output is None else _ENDINGS.get(output.suffix.lower())


def _written(form: str, graph: StageGraph, headline: str) -> str:
    from agentc.graph.svg import page_text, svg_text
    from agentc.graph.text import dot_text, graph_text, mermaid_text

    match form:
        case "svg":
            return svg_text(graph, headline)
        case "html":
            return page_text(graph, headline)
        case "dot":
            return dot_text(graph)
        case "mermaid":
            return mermaid_text(graph)
        case _:
            return graph_text(graph, headline)
