"""docs/dependencies.md says of each dependency why it is there, when it was checked, and what would
replace it; nothing that is declared is missing."""

from __future__ import annotations

import re
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
ITEMS = re.findall(r"^- (.*(?:\n  .*)*)", PAGE, flags=re.MULTILINE)
_WHOLE = re.compile(r"\*\*.+?\*\* \(.+\): .+\. Checked 20\d\d-\d\d-\d\d; in its place: .+\.")


def test_each_item_is_whole() -> None:
    assert len(ITEMS) > 30
    for item in ITEMS:
        assert _WHOLE.fullmatch(re.sub(r"\s+", " ", item)), item


def test_what_is_declared_has_a_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for extra in project["project"]["optional-dependencies"].values():
        declared += extra
    names = {re.split(r"[<>=;\[ ]", each)[0].lower() for each in declared}
    named = " ".join(item.split("**")[1].lower() for item in ITEMS)
    missing = {name for name in names if name not in named and not name.startswith("types-")}
    assert missing == set()
