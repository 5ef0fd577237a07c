"""`python -m agentc.reference DIR [--check]`: write the generated pages, or compare them.

`--errors` writes the pages of diagnostic codes instead, which are not kept in the repository:
`agentc explain` prints them, and the site has them (docs/site/build.py).
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
    parser.add_argument("--errors", action="store_true", help="the pages of diagnostic codes")
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    made = error_pages() if arguments.errors else _pages(arguments.directory)
    pages = {arguments.directory / name: text for name, text in made.items()}
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


def _pages(directory: Path) -> dict[str, str]:
    """Every generated page by its path below docs; beside it lies the page of the architecture."""
    table = load_backends()
    root = directory.resolve().parent
    return {
        "../ARCHITECTURE.md": architecture_page(root),
        "design/packages.md": packages_page(root),
        "reference/architecture.svg": picture(layers_of(root)),
        "reference/spec.md": spec_page(),
        "reference/backends.md": backends_page(table),
        "reference/checks.md": checks_page(),
        "reference/cost.md": cost_page(),
        "images/overview.svg": overview_picture(),
    }


def error_pages() -> dict[str, str]:
    """An index and the page of each diagnostic code, by file name."""
    table = load_backends()
    pages = {f"{code.code}.md": error_page(code, table) for code in CODES}
    return {"README.md": error_index(), **pages}


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


if __name__ == "__main__":
    raise SystemExit(main())
