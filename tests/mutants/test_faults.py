"""Every seeded fault still fits the source, so that the list does not rot between two
`make mutants`, which see whether they are caught."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
from tests.mutants.fault import Fault, read_faults

FAULTS = read_faults()


def test_there_are_forty_and_each_has_a_name() -> None:
    assert len(FAULTS) >= 40
    assert [
        name for name, count in Counter(fault.id for fault in FAULTS).items() if count > 1
    ] == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_it_applies(fault: Fault, repository: Path) -> None:
    text = (repository / fault.file).read_text(encoding="utf-8")
    faulty = fault.applied(text)
    assert faulty != text
    if fault.file.endswith(".py"):
        # A file that cannot be read would be seen by any test.
        assert ast.dump(ast.parse(faulty)) != ast.dump(ast.parse(text))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_its_tests_exist(fault: Fault, repository: Path) -> None:
    assert fault.tests
    for test in fault.tests:
        file, _, name = test.partition("::")
        path = repository / file
        assert path.exists(), test
        if name:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            functions = {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
            functions |= {n.name for n in ast.walk(tree) if isinstance(n, ast.AsyncFunctionDef)}
            assert name.split("::")[-1].partition("[")[0] in functions, test
