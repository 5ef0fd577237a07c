"""Modules, classes and functions are named with nouns and verbs: no participle of talking, no
pronoun."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ANYWHERE = frozenset(
    [
        "found",
        "told",
        "said",
        "known",
        "given",
        "asked",
        "shown",
        "kept",
        "say",
        "says",
        "tell",
        "tells",
        "look",
        "begun",
        "anew",
        "mended",
        "whoever",
        "somebody",
        "others",
        "own",
        "thing",
        "things",
        "such",
        "so",
        "stands",
    ]
)
AT_THE_END = frozenset({"each", "one"})
"""Pronouns: `read_each`, `play_one`. Before a noun they count it: `one_sided`, `on_each_node`."""
STANDARD = {
    "tell": "optuna's `Study.tell`",
    "RecipesNotFoundError": "as Python's FileNotFoundError",
    "Job.asked": "the key of a job in plan.json",
}


def refused(name: str) -> bool:
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)]
    return not ANYWHERE.isdisjoint(words) or (words[-1:] != [] and words[-1] in AT_THE_END)


def _names(path: Path) -> Iterator[tuple[str, int]]:
    """The module's, its classes' and functions', nested ones too; methods with their class."""
    yield path.stem, 1
    inside: list[tuple[ast.AST, str]] = [(ast.parse(path.read_text("utf-8")), "")]
    while inside:
        node, owner = inside.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield owner + child.name, child.lineno
            inside.append((child, f"{child.name}." if isinstance(child, ast.ClassDef) else ""))


def test_names_are_nouns_and_verbs_of_the_field() -> None:
    used, wrong = set(), []
    for folder in ("compiler", "backends"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for name, line in _names(path):
                last = name.rpartition(".")[2]
                if refused(last):
                    reason = name if name in STANDARD else last
                    used.add(reason)
                    if reason not in STANDARD:
                        wrong.append(f"{path.relative_to(ROOT)}:{line}: {name}")
    assert not wrong, "rename: " + ", ".join(wrong)
    assert set(STANDARD) == used, "no such name is left"


def test_pronouns_are_refused_and_numbers_are_not() -> None:
    assert all(map(refused, ("_asked", "play_one", "OwnServer", "read_each", "rounds_so_far")))
    assert not any(map(refused, ("one_sided", "EpisodeLeaveOneOutTrainer", "format_size", "_x")))
