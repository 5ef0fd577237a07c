"""`python -m agentc.reference DIR [--check]`: write the generated pages, or compare them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agentc.backend_api import load_backends
from agentc.reference.architecture import architecture_page, layers_of
from agentc.reference.architecture_picture import picture
from agentc.reference.check_rules import checks_page
from agentc.reference.codes import CODES
from agentc.reference.cost_page import cost_page
from agentc.reference.error_pages import error_index, error_page
from agentc.reference.overview import overview_picture
from agentc.reference.pages import backends_page, spec_page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a page is out of date")
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    pages = {arguments.directory / name: text for name, text in _pages(arguments.directory).items()}
    old = set((arguments.directory / "errors").glob("AGC*.md")) - set(pages)
    if not arguments.check:
        for path, text in pages.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for path in old:
            path.unlink()
        return 0
    stale = old | {path for path, text in pages.items() if _read(path) != text}
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
        "reference/architecture.svg": picture(layers_of(root)),
        "reference/spec.md": spec_page(),
        "reference/backends.md": backends_page(table),
        "reference/checks.md": checks_page(),
        "reference/cost.md": cost_page(),
        "images/overview.svg": overview_picture(),
        "errors/README.md": error_index(),
        **{f"errors/{code.code}.md": error_page(code, table) for code in CODES},
    }


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


if __name__ == "__main__":
    raise SystemExit(main())
