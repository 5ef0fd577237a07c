"""Serves scripted replies until SIGTERM: `python -m agentc_backends.servers.scripted.job_serve`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from agentc_backends.openai_api.application import create_app
from agentc_backends.openai_api.process import add_process_arguments, begin, serve
from agentc_backends.servers.scripted.scripted_model import ScriptedModel, read_rules


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    token = begin(options)
    try:
        entries = json.loads(
            options.rules_file.read_text() if options.rules_file else options.rules
        )
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise ValueError("rules must be a list of objects")
        rules = read_rules(entries)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    model = ScriptedModel(
        rules, root=options.model, max_model_len=options.max_model_len, delay_s=options.delay
    )
    app = create_app(model, options.served_name, token=token)
    # Replies under way are at most a sleep, which uvicorn's grace ends.
    serve(app, options, facts={"root": model.root}, on_stop=lambda: None)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="servers.scripted.job_serve", description=__doc__)
    add_process_arguments(parser)
    parser.add_argument("--model", default="scripted", help="reported as the model's root")
    parser.add_argument("--rules", default="[]", help="JSON; see rules.py")
    parser.add_argument("--rules-file", type=Path, help="a file with the same, instead")
    parser.add_argument("--max-model-len", type=int, default=65536, help="in bytes of text")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each reply")
    return parser


if __name__ == "__main__":
    sys.exit(main())
