"""What a kind does stands in its entry of the table: no other module lists kinds by name, so that
a new one is taken in everywhere by its entry alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentc.kinds import KINDS
from agentc.kinds.table import ACTING, SERVED, TRAINERS

NAMES = {kind.name for kind in KINDS}
ALLOWED = {
    "backends/agentc_backends/agents/rank/backend.py": "inputs, which are called as kinds are",
    "backends/agentc_backends/data/models/backend.py": "its own three kinds",
    "backends/agentc_backends/data/models/job_scratch.py": "its own three kinds",
    "backends/agentc_backends/data/models/model_files.py": "its own three kinds",
    "backends/agentc_backends/environments/colbench/backend.py": "capabilities",
    "backends/agentc_backends/environments/colbench/frontend/backend.py": "capabilities",
    "backends/agentc_backends/environments/guessing_games/backend.py": "capabilities",
    "backends/agentc_backends/environments/guessing_games/environment.py": "capabilities",
    "backends/agentc_backends/environments/server/environment.py": "capabilities of environments",
    "backends/agentc_backends/environments/webshop/environment.py": "kinds of a shop's pages",
    "backends/agentc_backends/trainers/common/program.py": "a critic may train its head only",
    "backends/agentc_backends/trainers/openrlhf/session.py": "its own two trainers",
    "compiler/agentc/conformance/bench.py": "capabilities of environments",
    "compiler/agentc/conformance/environments.py": "capabilities of environments",
    "compiler/agentc/diagnostics/synonyms.py": "keys of other tools",
    "compiler/agentc/reference/terms.py": "terms, two of which are called as kinds are",
    "compiler/agentc/schema/foreign_configs.py": "sections of other tools' files",
}
"""Modules whose words are not kinds, or are the kinds of their own backend."""


def listed_kinds(source: str) -> Iterator[int]:
    """Lines that list kinds, or that ask whether some kind has a certain name."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Tuple(elts=words) | ast.List(elts=words) | ast.Set(elts=words):
                if _kinds_in(words) > 1:
                    yield node.lineno
            case ast.Dict(keys=words):
                if _kinds_in(words) > 1:
                    yield node.lineno
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
                words = [word for each in sides for word in getattr(each, "elts", [each])]
                if _kinds_in(words) and any(map(_says_kind, sides)):
                    yield node.lineno
            case ast.Match(subject=subject, cases=cases):
                patterns = [each for case in cases for each in ast.walk(case.pattern)]
                words = [each.value for each in patterns if isinstance(each, ast.MatchValue)]
                if _kinds_in(words) and _says_kind(subject):
                    yield node.lineno


def _kinds_in(words: list[ast.expr] | list[ast.expr | None]) -> int:
    return sum(isinstance(word, ast.Constant) and word.value in NAMES for word in words)


def _says_kind(node: ast.expr) -> bool:
    """Whether an expression reads what is called `kind`: `stage.kind`, `str(job["kind"])`."""
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id="kind") | ast.Attribute(attr="kind") | ast.Constant(value="kind"):
                return True
    return False


@pytest.mark.parametrize(
    "source",
    [
        'kinds = ("sft", "dpo")',
        'kinds = {"pair": 1, "mix": 2}',
        'if stage.kind == "revise": pass',
        'if str(job["kind"]) in ("dataset",): pass',
        'match stage.kind:\n    case "sft" | "dpo": pass',
    ],
)
def test_a_list_of_kinds_is_seen(source: str) -> None:
    assert list(listed_kinds(source)) == [1]


def test_no_other_module_lists_kinds(repository: Path) -> None:
    found: dict[str, list[int]] = {}
    for tree in ("compiler/agentc", "backends/agentc_backends"):
        for path in sorted((repository / tree).rglob("*.py")):
            name = path.relative_to(repository).as_posix()
            if not name.startswith("compiler/agentc/kinds/"):
                found[name] = list(listed_kinds(path.read_text(encoding="utf-8")))
    assert {name: lines for name, lines in found.items() if lines and name not in ALLOWED} == {}
    assert [name for name in ALLOWED if not found.get(name)] == []


def test_what_a_kind_says_of_itself_holds() -> None:
    shared = ("lr", "epochs", "max_steps", "global_batch", "processes", "max_length", "lora")
    for kind in KINDS:
        assert all(kind.role(name) is not None for name in kind.reworks)
        # Rules read these of every trainer, and ask the policy and the server of every actor.
        assert kind.name not in TRAINERS or all(map(kind.has, shared))
        assert kind.name not in ACTING or kind.role("model") is not None
        assert kind.name not in ACTING or kind.name in SERVED
        # What asks a server and bounds no reply has it score what is given, or leaves the bound to
        # a program of others, of which no forecast knows anything.
        assert kind.longest_reply is None or kind.name in SERVED
        assert kind.name not in SERVED or (kind.longest_reply is None) is (
            kind.forecast in ("scores", "unknown")
        )
        if kind.longest_reply is not None:
            group, _, name = kind.longest_reply.partition(".")
            fields = next(field.fields for field in kind.fields if field.name == group)
            assert name in {field.name for field in fields}
