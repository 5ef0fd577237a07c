"""`python -m tests.roads [--write]`: follow the values; print the section, or put it in place.

It needs the light and the torch software stack (`make software`), and a minute.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.roads.follow import ROOT, follow
from tests.roads.page import section

from agentc.reference.architecture import with_section


def main() -> None:
    """Follow, then print or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write it into notes/roads.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = section(follow(Path(folder)))
    if not arguments.write:
        print("\n".join(lines))
        return
    page = ROOT / "notes" / "roads.md"
    page.write_text(with_section(page.read_text(encoding="utf-8"), "roads", lines), "utf-8")


if __name__ == "__main__":
    main()
