"""One name, one meaning: where a class name stands twice, the glossary gives the reason."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _class_names() -> Counter[str]:
    names: Counter[str] = Counter()
    for folder in ("compiler", "backends"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            names.update(node.name for node in tree.body if isinstance(node, ast.ClassDef))
    return names


def test_a_name_that_stands_twice_has_its_reason_in_the_glossary() -> None:
    section = (
        (ROOT / "docs/glossary.md").read_text("utf-8").partition("## Names with two meanings")[2]
    )
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    twice = {name for name, count in _class_names().items() if count > 1}
    assert {name for name in twice if not name.startswith("_")} == explained
