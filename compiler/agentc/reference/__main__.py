"""`python -m agentc.reference DIR [--check]`: write the generated pages, or compare them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentc.backend_api import load_backends
from agentc.reference.pages import backends_page, errors_page, spec_page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a page is out of date")
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    folder = arguments.directory / "reference"
    pages = {
        "spec.md": spec_page(),
        "backends.md": backends_page(load_backends()),
        "errors.md": errors_page(),
    }
    stale = []
    for name, text in pages.items():
        path = folder / name
        if arguments.check:
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                stale.append(str(path))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale:
        print("out of date, run `make docs`: " + ", ".join(stale), file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
