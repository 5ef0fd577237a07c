"""Documentation, help, messages, reports and specs use the words of the field (`words.toml`)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomllib

ROOT = Path(__file__).resolve().parents[2]
_LIST = tomllib.loads((Path(__file__).parent / "words.toml").read_text("utf-8"))
WORDS = [(re.compile(rf"\b(?:{word['never']})\b", re.I), word) for word in _LIST["words"]]
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)

PROMPTS = {
    "backends/agentc_backends/agents/revise/backend.py": "Agent-R's thoughts",
    "backends/agentc_backends/data/chat/chat_template.py": "messages that probe a template",
    "backends/agentc_backends/environments/colbench/settings.py": "the human's prompt",
    "backends/agentc_backends/environments/guessing_games": "questions and prompts of the games",
    "backends/agentc_backends/environments/webshop/expert.py": "thoughts of WebShop's expert",
    "compiler/agentc/run/refusals.py": "names of groups of an expression",
    "compiler/agentc/runtime/browser/render.py": "a program in JavaScript",
}
"""Strings that a model reads or that are code, so that another word would change results."""


def _faults(place: str, text: str) -> list[str]:
    return [
        f"{place}: `{match[0]}` in ...{text[max(0, match.start() - 40) : match.end() + 30]!r}, "
        f"write: {word['write']}"
        for pattern, word in WORDS
        for match in pattern.finditer(text)
    ]


def _strings(source: str) -> Iterator[tuple[int, str]]:
    """Texts of several words in a module that are no docstrings, each with its line."""
    tree = ast.parse(source)
    skipped = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part for part in node.values if isinstance(part, ast.Constant)]
            skipped |= {id(part) for part in parts}
            yield node.lineno, " ".join(str(part.value) for part in parts)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in skipped
            and " " in node.value
        ):
            yield node.lineno, node.value


def _sources() -> Iterator[Path]:
    for folder in ("compiler", "backends"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.relative_to(ROOT).as_posix().startswith(tuple(PROMPTS)):
                yield path


@pytest.mark.parametrize("word", _LIST["words"], ids=lambda word: word["write"])
def test_the_list_finds_its_examples(word: dict[str, str]) -> None:
    assert len(_faults("here", word["example"])) == 1
    assert _faults("here", word["write"]) == []


def test_messages_help_and_documentation_in_the_code() -> None:
    """Help of commands, messages, texts of kinds, settings, backends and codes are literals."""
    faults = [
        fault
        for path in _sources()
        for line, text in _strings(path.read_text("utf-8"))
        for fault in _faults(f"{path.relative_to(ROOT)}:{line}", text)
    ]
    assert faults == []


def test_templates_of_the_report() -> None:
    faults = [
        fault
        for path in sorted(ROOT.glob("backends/**/*.html.j2"))
        for fault in _faults(
            path.name, re.sub(r"{[{%].*?[%}]}|<[^>]*>", " ", path.read_text("utf-8"))
        )
    ]
    assert faults == []


def _page_faults(pages: list[Path]) -> dict[str, list[str]]:
    """The faults of each page that has some, outside of its code."""
    names = {page.relative_to(ROOT).as_posix(): page for page in pages}
    faults = {
        name: _faults(name, _CODE.sub("`", page.read_text("utf-8"))) for name, page in names.items()
    }
    return {name: of_page for name, of_page in faults.items() if of_page}


def test_pages_for_users() -> None:
    pages = [ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")]
    for folder in ("docs", "docs/reproduce", "specs"):
        pages += sorted((ROOT / folder).glob("*.md"))
    assert _page_faults(pages) == {}


def test_pages_for_developers() -> None:
    readmes = sorted((ROOT / "backends").rglob("README.md"))
    faults = _page_faults([*sorted((ROOT / "docs" / "design").glob("*.md")), *readmes])
    assert faults == {}
