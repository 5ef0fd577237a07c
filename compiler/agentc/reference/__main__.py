"""`python -m agentc.reference DIR [--check | --site]`: write generated pages, or compare them.

`--site` writes the reference and the pages of diagnostic codes. They are not committed: `agentc
explain` shows the same, and the site has them (docs/site/build.py).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentc.backend_api import load_backends
from agentc.reference.architecture import architecture_page, layers_of, packages_page, picture
from agentc.reference.codes import CODES, checks_page
from agentc.reference.error_pages import error_index, error_page
from agentc.reference.overview import cost_page, overview_picture
from agentc.reference.pages import backends_page, spec_page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a page is out of date")
    parser.add_argument("--site", action="store_true", help="the pages that only the site has")
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    texts = site_pages() if arguments.site else committed_pages(arguments.directory)
    pages = {arguments.directory / name: text for name, text in texts.items()}
    if not arguments.check:
        for path, text in pages.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return 0
    stale = {path for path, text in pages.items() if _read(path) != text}
    if stale:
        listed = ", ".join(sorted(map(str, stale)))
        print(f"out of date, run `make docs`: {listed}", file=sys.stderr)
    return 1 if stale else 0


def committed_pages(directory: Path) -> dict[str, str]:
    """The generated pages and pictures in the repository, by path below docs."""
    root = directory.resolve().parent
    return {
        "../ARCHITECTURE.md": architecture_page(root),
        "design/packages.md": packages_page(root),
        "images/architecture.svg": picture(layers_of(root)),
        "images/overview.svg": overview_picture(),
    }


def site_pages() -> dict[str, str]:
    """The reference, and an index and a page for each diagnostic code, by path below docs."""
    table = load_backends()
    return {
        "reference/spec.md": spec_page(),
        "reference/backends.md": backends_page(table),
        "reference/checks.md": checks_page(),
        "reference/cost.md": cost_page(),
        "errors/README.md": error_index(),
        **{f"errors/{code.code}.md": error_page(code, table) for code in CODES},
    }


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


if __name__ == "__main__":
    raise SystemExit(main())
