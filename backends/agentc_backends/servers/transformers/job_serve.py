"""Serves a checkpoint until SIGTERM: `python -m agentc_backends.servers.transformers.job_serve`.

Binds loopback, takes the run's token from AGENTC_TOKEN, and writes a ready file with the address
once it listens.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentc_backends.openai_api.process import add_process_arguments, add_settings, prepare_process
from agentc_backends.servers.transformers.settings import EngineOptions

if TYPE_CHECKING:
    from agentc_backends.servers.transformers.reranking import Reranker


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    token = prepare_process(options)
    # Before torch is imported: OpenMP reads it once.
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return _serve(options, token)


def _serve(options: argparse.Namespace, token: str | None) -> int:
    from agentc_backends.engine.generation import EngineLimits
    from agentc_backends.openai_api.application import create_app
    from agentc_backends.openai_api.process import serve
    from agentc_backends.servers.transformers.engine_process import EngineSettings
    from agentc_backends.servers.transformers.served_model import (
        EngineClient,
        EngineEndedError,
        ServedModel,
    )

    settings = EngineSettings(
        path=options.model,
        dtype=options.dtype,
        threads=options.threads,
        limits=EngineLimits(
            max_batch_tokens=options.max_batch_tokens,
            max_sequences=options.max_sequences,
            cache_bytes=options.cache_mb << 20,
            settle_close_calls=options.dtype == "float32",
        ),
        max_model_len=options.max_model_len,
        structured=options.structured,
    )
    try:
        engine, loaded = EngineClient.start(settings, _end_soon)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except EngineEndedError as error:
        print(error, file=sys.stderr)
        return 1
    try:
        try:
            reranking = _reranking(options, loaded.root)
        except ValueError as error:
            print(error, file=sys.stderr)
            return 2
        model = ServedModel(engine, loaded, reranking, structured=options.structured)
        app = create_app(model, options.served_name, token=token)
        facts = {"root": model.root, **({} if reranking is None else {"rerank": reranking.facts})}
        serve(app, options, facts=facts, on_start=engine.connect, on_stop=engine.stop)
    finally:
        engine.stop()
        engine.reap()
    return 0


def _reranking(options: argparse.Namespace, root: str) -> Reranker | None:
    """Raises ValueError where a model is served that has no critic."""
    if options.rerank_candidates is None:
        return None
    import torch

    from agentc_backends.servers.transformers.reranking import Reranker

    torch.set_num_threads(options.threads)  # of the critic, in this process
    return Reranker.read(root, options.rerank_candidates, options.rerank_critic)


def _end_soon() -> None:
    """A server whose engine is dead must not look alive; clients get their errors first."""
    threading.Timer(0.5, os._exit, (1,)).start()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="servers.transformers.job_serve", description=__doc__)
    add_process_arguments(parser)
    parser.add_argument("--model", required=True, help="directory in Hugging Face layout")
    add_settings(parser, EngineOptions)
    parser.add_argument(
        "--rerank-candidates", type=int, help="say the best of N, by the run's critic"
    )
    parser.add_argument(
        "--rerank-critic", choices=("target", "online"), default="target", help="who ranks them"
    )
    parser.add_argument(
        "--structured", action="store_true", help="hold replies to schemas, by llguidance"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
