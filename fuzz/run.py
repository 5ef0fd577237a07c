"""The atheris harness: `python -m fuzz.run TARGET [libFuzzer options]`; see README.md here."""

from __future__ import annotations

import sys

import atheris  # type: ignore[import-not-found]

with atheris.instrument_imports(include=["agentc", "jinja2"]):
    from fuzz.targets import Targets


def main() -> None:
    """Run one target until libFuzzer's limits end it."""
    targets = Targets().named()
    if len(sys.argv) < 2 or sys.argv[1] not in targets:
        sys.exit(f"usage: python -m fuzz.run {{{','.join(targets)}}} [libFuzzer options]")
    target = targets[sys.argv[1]]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
