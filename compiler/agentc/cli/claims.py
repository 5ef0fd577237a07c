"""`agentc claims [NAME|SPEC]`: what the paper says, what was measured, and each verdict."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import (
    add_format_argument,
    compile_typed,
    names_spec,
    show_found,
    wants_colour,
)
from agentc.cli.choose_run import add_run_choice, choose_run
from agentc.cli.store_argument import add_store_argument
from agentc.exit_codes import EXIT_CLAIM, EXIT_NOT_FOUND, EXIT_SPEC
from agentc.text import terminal_width

if TYPE_CHECKING:
    from agentc.plan.work import Document

HELP = "show the verdicts on the claims of an experiment"

_EPILOG = """\
By a name: those of its run; by a spec: those of what it says now. Without either: those of what was
run last. Verdicts: `reproduced`, `within noise` (the
data cannot tell), `not reproduced`, `not judged`; docs/claims.md says how they are made.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    add_run_choice(parser)
    add_store_argument(parser)
    add_format_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """0; 1 errors in the spec; 5 there is nothing to show; 6 a gated claim is not reproduced."""
    import json

    from agentc.plan.work import read_plan
    from agentc.run.claims import (
        find_verdicts,
        gate_message,
        has_claims,
        render_verdicts,
        shut_gates,
    )
    from agentc.store.paths import readable_store, variant_of

    layout = readable_store(arguments.store)
    given = arguments.name
    if given is not None and names_spec(given):
        compiled = _compiled(arguments)
        if compiled is None:
            return EXIT_SPEC
        document = compiled
    else:
        document = read_plan(choose_run(layout, given, arguments).folder.last_plan)
    verdicts = find_verdicts(document, layout)
    if verdicts is None:
        what = "has no verdicts yet; run it first" if has_claims(document) else "has no claims"
        print(f"agentc: {variant_of(document).label} {what}", file=sys.stderr)
        return EXIT_NOT_FOUND
    if arguments.format == "json":
        print(json.dumps(verdicts, ensure_ascii=False, indent=2, sort_keys=True))
    else:
        width = terminal_width(sys.stdout)
        print(render_verdicts(verdicts, colour=wants_colour(sys.stdout), width=width))
    shut = shut_gates(verdicts)
    if shut:
        print(gate_message(shut), file=sys.stderr)
        return EXIT_CLAIM
    return 0


def _compiled(arguments: argparse.Namespace) -> Document | None:
    from agentc.backend_api import load_backends
    from agentc.plan.render import plan_document

    arguments.spec = Path(arguments.name)
    compiled = compile_typed(arguments, load_backends())
    show_found(compiled, arguments)
    return None if compiled.plan is None else plan_document(compiled.plan)
