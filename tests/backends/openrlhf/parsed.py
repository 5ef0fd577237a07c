"""Run by OpenRLHF's own Python: what its command makes of a command line.

python parsed.py sft ARGV...     prints JSON: the parser's flags, and the values it read
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from types import SimpleNamespace
from typing import Any


class Parsed(Exception):  # noqa: N818 - not an error
    """Raised where the command would begin to work."""


def main() -> None:
    from agentc_backends.trainers.openrlhf.machine import prepare_machine

    prepare_machine()
    import openrlhf.utils

    flags: dict[str, Any] = {}
    stock = argparse.ArgumentParser.parse_args

    def parse_args(self: argparse.ArgumentParser, *arguments: Any) -> Any:
        for action in self._actions:
            for flag in action.option_strings:
                if flag.startswith("--") and flag != "--help":
                    flags[flag] = {
                        "values": 0 if action.const is not None else action.nargs or 1,
                        "type": getattr(action.type, "__name__", None),
                        "choices": action.choices,
                    }
        return stock(self, *arguments)

    def begin(args: Any) -> None:
        raise Parsed(args)

    setattr(argparse.ArgumentParser, "parse_args", parse_args)  # noqa: B010 - mypy
    setattr(openrlhf.utils, "get_strategy", begin)  # noqa: B010
    module = f"openrlhf.cli.train_{sys.argv[1]}"
    sys.argv = [module, *sys.argv[2:]]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except Parsed as parsed:
        print(json.dumps({"flags": flags, "values": flat(parsed.args[0])}))


def flat(node: SimpleNamespace, prefix: str = "--") -> dict[str, Any]:
    """Values by flag."""
    found: dict[str, Any] = {}
    for name, value in vars(node).items():
        if isinstance(value, SimpleNamespace):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


if __name__ == "__main__":
    main()
