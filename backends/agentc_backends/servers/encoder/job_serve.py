"""Serves an encoder until SIGTERM: `python -m agentc_backends.servers.encoder.job_serve`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from agentc_backends.openai_api.process import add_process_arguments, begin


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    token = begin(options)
    # Before torch is imported: OpenMP reads it once.
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from agentc_backends.openai_api.process import serve
    from agentc_backends.servers.encoder.application import ServedEncoder, create_app

    try:
        encoder = ServedEncoder(options.model)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    app = create_app(encoder, options.served_name, token=token)
    serve(app, options, facts={"root": encoder.root}, on_stop=lambda: None)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="servers.encoder.job_serve", description=__doc__)
    add_process_arguments(parser)
    parser.add_argument("--model", required=True, help="directory in Hugging Face layout")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    return parser


if __name__ == "__main__":
    sys.exit(main())
