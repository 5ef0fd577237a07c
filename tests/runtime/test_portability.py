"""Job programs run inside every backend's software: `agentc.program` is Python 3.8 and needs the
standard library only, and the wrapper needs the standard library and agentc's own low layers."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import agentc.program
import agentc.runtime

PROGRAM = Path(agentc.program.__file__).parent
RUNTIME = Path(agentc.runtime.__file__).parent
# The package itself has the version and imports nothing.
PROGRAM_MODULES = [PROGRAM.parent / "__init__.py", *sorted(PROGRAM.rglob("*.py"))]


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield node.module or ""


@pytest.mark.parametrize("path", PROGRAM_MODULES, ids=lambda path: path.stem)
def test_what_programs_import_is_old_python_of_the_standard_library(path: Path) -> None:
    for name in imports(ast.parse(path.read_text(), feature_version=(3, 8))):
        ours = name == "agentc" or name.startswith("agentc.program")
        assert name.split(".")[0] in sys.stdlib_module_names or ours, name


def test_the_wrapper_imports_no_third_party_package() -> None:
    for path in sorted(RUNTIME.rglob("*.py")):
        for name in imports(ast.parse(path.read_text())):
            top = name.split(".")[0]
            assert top in sys.stdlib_module_names or top == "agentc", f"{path}: {name}"
