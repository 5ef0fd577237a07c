"""`agentc claims [SPEC]`: what the paper says, what was measured, and the verdict on each claim."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from agentc.cli.arguments import add_spec_arguments, compile_typed, show_diagnostics, wants_colour
from agentc.cli.store_argument import add_store_argument

if TYPE_CHECKING:
    from agentc.plan.work import Document
    from agentc.runtime.layout import StoreLayout

HELP = "show the verdicts on the claims of an experiment"

_EPILOG = """\
Without SPEC: those of the experiment that was run last. Verdicts: `reproduced`, `within noise` (the
data cannot tell), `not reproduced`, `not judged`; docs/claims.md says how they are made.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    add_spec_arguments(parser, optional=True)
    add_store_argument(parser)
    parser.add_argument("--json", action="store_true", help="the verdicts as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """0; 1 errors in the spec; 5 there is nothing to show; 6 a gated claim is not reproduced."""
    import json

    from agentc.run.claims import (
        EXIT_CLAIM,
        find_verdicts,
        gate_message,
        has_claims,
        render_verdicts,
        shut_gates,
    )
    from agentc.runtime.layout import StoreLayout
    from agentc.store.paths import store_root

    layout = StoreLayout(store_root(arguments.store))
    document = _last_run(layout) if arguments.spec is None else _compiled(arguments)
    if isinstance(document, int):
        return document
    verdicts = find_verdicts(document, layout)
    if verdicts is None:
        what = "were not judged yet: run it first" if has_claims(document) else "there are none"
        print(f"agentc: claims of {document['name']}: {what}", file=sys.stderr)
        return 5
    if arguments.json:
        print(json.dumps(verdicts, ensure_ascii=False, indent=2, sort_keys=True))
    else:
        print(render_verdicts(verdicts, colour=wants_colour(sys.stdout)))
    shut = shut_gates(verdicts)
    if shut:
        print(gate_message(shut), file=sys.stderr)
        return EXIT_CLAIM
    return 0


def _last_run(layout: StoreLayout) -> Document | int:
    from agentc.plan.work import read_plan
    from agentc.store.paths import RunFolder, run_names

    known = run_names(layout)
    if not known:
        print(f"agentc: nothing was run with the store {layout.root} yet", file=sys.stderr)
        return 5
    return read_plan(RunFolder.of(layout, known[0]).last_plan)


def _compiled(arguments: argparse.Namespace) -> Document | int:
    from agentc.backend_api import load_backends
    from agentc.plan.render import plan_document

    compiled = compile_typed(arguments, load_backends())
    show_diagnostics(compiled.diagnostics)
    return 1 if compiled.plan is None else plan_document(compiled.plan)
