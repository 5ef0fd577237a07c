"""The plan of every shipped spec is the one in this folder.

A difference means that users get other jobs for the same spec. When that is meant, write the
files anew with `make golden`, and read the difference before committing it: a changed key makes
everybody run that job again.
"""

from __future__ import annotations

import os
from difflib import unified_diff
from pathlib import Path

import pytest
from canonical_plan import canonical_plan

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.plan.render import plan_document

FOLDER = Path(__file__).parent
SPECS = FOLDER.parents[1] / "specs"
NAMES = sorted(path.relative_to(SPECS).as_posix() for path in SPECS.rglob("*.yaml"))


def golden_file(name: str) -> Path:
    """`eto/webshop.yaml` -> `eto-webshop.txt`."""
    return FOLDER / (name.removesuffix(".yaml").replace("/", "-") + ".txt")


@pytest.mark.parametrize("name", NAMES)
def test_plan_of_a_shipped_spec(name: str) -> None:
    compiled = compile_spec(SPECS / name, {}, load_backends())
    assert compiled.plan is not None, compiled.diagnostics
    text = canonical_plan(plan_document(compiled.plan))
    file = golden_file(name)
    if os.environ.get("AGENTC_UPDATE"):
        file.write_text(text, encoding="utf-8")
    kept = file.read_text(encoding="utf-8") if file.exists() else ""
    changes = list(unified_diff(kept.splitlines(), text.splitlines(), "kept", "now", n=1))
    assert not changes, "\n".join(["`make golden` accepts this:", *changes[:80]])


def test_no_golden_file_is_left_over() -> None:
    assert {path.name for path in FOLDER.glob("*.txt")} == {golden_file(n).name for n in NAMES}
