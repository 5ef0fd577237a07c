"""Run by the Python of vLLM: what its parser and its engine make of servers' command lines.

python vllm_accepts.py < JSON list of words after `serve`
prints a JSON line for each. In vLLM's CPU build the engine's configuration is one for a CPU: what
the model says holds there too, what the card says does not.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    from agentc_backends.servers.vllm.job_serve import alias_distribution

    alias_distribution()
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = make_arg_parser(FlexibleArgumentParser())
    known = {flag for action in parser._actions for flag in action.option_strings}
    for words in json.load(sys.stdin):
        unknown = [word for word in words if word.startswith("-") and word not in known]
        parsed = parser.parse_args(words)
        validate_parsed_serve_args(parsed)
        parsed.model = parsed.model_tag
        config = AsyncEngineArgs.from_cli_args(parsed).create_engine_config()
        facts = {
            "unknown": unknown,
            "context": config.model_config.max_model_len,
            "batch": config.scheduler_config.max_num_batched_tokens,
            "chunked": config.scheduler_config.enable_chunked_prefill,
            "dtype": str(config.model_config.dtype),
            "devices": config.parallel_config.world_size,
            "share": config.cache_config.gpu_memory_utilization,
            "prefixes": config.cache_config.enable_prefix_caching,
            "load": config.load_config.load_format,
            "code": config.model_config.trust_remote_code,
            "generation": config.model_config.generation_config,
        }
        print("facts " + json.dumps(facts))


if __name__ == "__main__":
    main()
