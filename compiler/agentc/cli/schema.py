"""`agentc dev schema`: the JSON Schema of the spec language."""

from __future__ import annotations

import argparse
import json
import sys

from agentc.exit_codes import EXIT_NOT_FOUND

HELP = "print the JSON Schema of the spec language, for completion in editors"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--kind", metavar="KIND", help="only the stages of one kind")
    which.add_argument("--backend", metavar="ID", help="only the settings of one backend's own")
    which.add_argument(
        "--draft-07", action="store_true", help="the whole in draft-07, as SchemaStore requests it"
    )
    parser.epilog = (
        "For completion in an editor: `agentc dev schema > agentc.schema.json`, and at the top of\n"
        "a spec `# yaml-language-server: $schema=agentc.schema.json`. docs/editors.md says more."
    )


def execute(arguments: argparse.Namespace) -> int:
    """0, or 5 when the kind or backend does not exist."""
    from agentc.backend_api import StageBackend, entry_fields, load_backends
    from agentc.diagnostics.suggest import did_you_mean, listed
    from agentc.kinds import KINDS, kind_named
    from agentc.published.json_schema import fields_schema, kind_schema, language_schema

    table = load_backends()
    if arguments.kind is not None:
        kind = kind_named(arguments.kind)
        if kind is None:
            names = [each.name for each in KINDS]
            hint = did_you_mean(arguments.kind, names) or f"kinds: {listed(names, 40)}"
            print(f"agentc: no stage kind `{arguments.kind}`; {hint}", file=sys.stderr)
            return EXIT_NOT_FOUND
        schema = kind_schema(kind, table)
    elif arguments.backend is not None:
        backend = table.backends.get(arguments.backend)
        if backend is None:
            ids = sorted(table.backends)
            hint = did_you_mean(arguments.backend, ids) or f"backends: {listed(ids, 40)}"
            print(f"agentc: no backend `{arguments.backend}`; {hint}", file=sys.stderr)
            return EXIT_NOT_FOUND
        own = backend.options if isinstance(backend, StageBackend) else entry_fields(backend)
        schema = fields_schema(f"settings of {backend.id}", own)
    else:
        schema = language_schema(table)
        if arguments.draft_07:
            from agentc.published.older_dialect import in_draft_07

            schema = in_draft_07(schema)
    print(json.dumps(schema, indent=2, ensure_ascii=False))
    return 0
