"""`agentc init --from-archer CONFIG [FILE]`: a configuration of ArCHer's code as a spec."""

from __future__ import annotations

import sys
from pathlib import Path

from agentc.cli.parser import write_new_file
from agentc.exit_codes import EXIT_DONE, EXIT_USAGE


def write_from_archer(config: Path, target: Path | None) -> int:
    """0 with the spec written; 1 where the configuration says nothing that could be one, 2 where
    FILE is there already."""
    from agentc.cli.arguments import show_diagnostics
    from agentc.diagnostics import Sink
    from agentc.importing.archer import import_archer
    from agentc.importing.compose import compose

    sink = Sink()
    try:
        found = import_archer(config.name, compose(config, sink))
    finally:
        show_diagnostics(sink.sorted())
    for crash in found.crashes:
        print(f"as released, {crash}", file=sys.stderr)
    if target is None:
        print(found.text, end="")
        return EXIT_DONE
    if not write_new_file(target, found.text):
        return EXIT_USAGE
    print(f"wrote {target}; next: agentc check {target}")
    return EXIT_DONE
