"""No code of a model repository is run: whatever loads a model, a tokenizer or a configuration by
transformers says so itself, instead of resting on a default."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import agentc_backends

ROOT = Path(agentc_backends.__file__).parent
LOADERS = ("from_pretrained", "from_config")
DATA_ALONE = ("GenerationConfig", "PeftModel")
"""Classes that read no class of a repository: settings of replies; adapters of a loaded model."""
KEYWORD = "trust_remote_code"


def loading_calls() -> Iterator[tuple[str, ast.Module, ast.Call]]:
    for path in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr in LOADERS and ast.unparse(node.func.value) not in DATA_ALONE:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", tree, node


def refuses_code(tree: ast.Module, call: ast.Call) -> bool:
    """Whether the call passes False, by itself or by a mapping of its module."""
    for keyword in call.keywords:
        if keyword.arg == KEYWORD:
            return isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        if keyword.arg is None and isinstance(keyword.value, ast.Name):
            assigned = [
                node.value
                for node in tree.body
                if isinstance(node, ast.AnnAssign)
                and ast.unparse(node.target) == keyword.value.id
                and node.value is not None
            ]
            return any(f"'{KEYWORD}': False" in ast.unparse(value) for value in assigned)
    return False


def test_every_loader_refuses_code() -> None:
    calls = list(loading_calls())
    assert len(calls) >= 15
    assert [place for place, tree, call in calls if not refuses_code(tree, call)] == []


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("AutoModel.from_pretrained(p)", False),
        ("AutoModel.from_pretrained(p, trust_remote_code=True)", False),
        ("AutoModel.from_pretrained(p, **ELSEWHERE)", False),
        ("AutoModel.from_pretrained(p, trust_remote_code=False)", True),
    ],
)
def test_the_test_can_fail(call: str, expected: bool) -> None:
    tree = ast.parse(call)
    (node,) = (each for each in ast.walk(tree) if isinstance(each, ast.Call))
    assert refuses_code(tree, node) is expected


def test_the_file_that_xtuner_runs_refuses_code() -> None:
    text = (ROOT / "trainers" / "xtuner" / "config_file.py").read_text(encoding="utf-8")
    assert text.count(".from_pretrained,") == text.count(f"{KEYWORD}=False,") == 2
