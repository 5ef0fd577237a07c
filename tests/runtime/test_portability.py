"""The runtime runs inside every backend's environment: standard library, Python 3.8 syntax."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import agentc.runtime

RUNTIME = Path(agentc.runtime.__file__).parent
MODULES = [RUNTIME.parent / "__init__.py", *sorted(RUNTIME.rglob("*.py"))]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_module_is_old_python_and_imports_only_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names = [node.module or ""]
        for name in names:
            top = name.split(".")[0]
            # The package itself holds the version and imports nothing.
            ours = name == "agentc" or name.startswith("agentc.runtime")
            assert top in sys.stdlib_module_names or ours, name
