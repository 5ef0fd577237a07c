"""The public surface: the names that docs/public_api.md lists exist, and what we show to users
imports nothing else of agentc."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OWN = "agentc_backends.environments.counting"
"""The package that the recipe of an environment writes."""
RECIPES = ("backend", "environment")
"""Recipes for code that may be outside of agentc; the others change agentc itself."""


def listed() -> dict[str, frozenset[str]]:
    """Each public module with its public names; those of a row in words are all that it has."""
    page = (ROOT / "docs" / "public_api.md").read_text(encoding="utf-8")
    found = {}
    for module, names in re.findall(r"^\| [^|]*\| `([\w.]+)` \| (.*) \|$", page, re.MULTILINE):
        there = importlib.import_module(module)
        words = re.findall(r"`(\w+)`", names)
        every = frozenset(getattr(there, "__all__", None) or vars(there))
        found[module] = every if not re.fullmatch(r"(`\w+`(, )?)+", names) else frozenset(words)
    return found


def shown() -> Iterator[tuple[str, str]]:
    """The code that users are shown, with where it is."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        for code in re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.S | re.M):
            yield page.name, code
    for name in RECIPES:
        for part in (
            (ROOT / "docs" / "recipes" / f"{name}.diff").read_text("utf-8").split("diff --git")
        ):
            added = "\n".join(
                line[1:] for line in part.split("\n") if re.match(r"\+(?!\+\+)", line)
            )
            if ".py " in part.split("\n")[0] and "/tests/" not in part.split("\n")[0]:
                yield f"{name}.diff", added
    for package in sorted((ROOT / "tests" / "third_party").iterdir()):
        for file in sorted(package.rglob("*.py")) if package.is_dir() else ():
            yield file.name, file.read_text("utf-8")


def imported(code: str) -> Iterator[tuple[str, str]]:
    """Module and name of each import of agentc's in some code."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("agentc"):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.startswith("agentc"))


def test_what_is_public_exists() -> None:
    table = listed()
    assert len(table) > 10
    for module, names in table.items():
        there = importlib.import_module(module)
        assert [name for name in names if not hasattr(there, name)] == [], module


def test_what_users_are_shown_imports_what_is_public() -> None:
    table = listed()
    sources = list(shown())
    assert len(sources) > 20
    private = [
        (where, module, name)
        for where, code in sources
        for module, name in imported(code)
        if module != OWN and name not in table.get(module, ())
    ]
    assert private == []
