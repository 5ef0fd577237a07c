"""The plan of every shipped spec is the one in this folder.

A difference means that users get other jobs for the same spec. When that is meant, write the
files anew with `make golden`, and read the difference before committing it: a changed key makes
everybody run that job again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from canonical_plan import canonical_plan

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.plan.render import plan_document

FOLDER = Path(__file__).parent
SPECS = FOLDER.parents[1] / "specs"
NAMES = sorted(path.relative_to(SPECS).as_posix() for path in SPECS.rglob("*.yaml"))


def golden_file(name: str, ending: str = ".txt") -> Path:
    """`eto/webshop.yaml` -> `eto-webshop.txt`."""
    return FOLDER / (name.removesuffix(".yaml").replace("/", "-") + ending)


@pytest.mark.parametrize("name", NAMES)
def test_plan_of_a_shipped_spec(name: str) -> None:
    compare(canonical_plan(compiled(name, None)), golden_file(name))


@pytest.mark.parametrize("name", NAMES)
def test_keys_at_the_scales_of_a_shipped_spec(name: str) -> None:
    """At its smaller scales the keys are enough: what makes them up is seen at the full one."""
    spec = compile_spec(SPECS / name, {}, load_backends()).spec
    lines = [
        f"{scale} {job['id']} = {job['kind']}/{job['key']}"
        for scale in spec.scales
        for job in compiled(name, scale)["jobs"]
    ]
    compare("".join(f"{line}\n" for line in lines), golden_file(name, ".scales.txt"))


def compiled(name: str, scale: str | None) -> Mapping[str, Any]:
    found = compile_spec(SPECS / name, {}, load_backends(), scale=scale)
    assert found.plan is not None, found.diagnostics
    return plan_document(found.plan)


def compare(text: str, file: Path) -> None:
    if os.environ.get("AGENTC_UPDATE"):
        # Without scales there is nothing to keep.
        file.write_text(text, encoding="utf-8") if text else file.unlink(missing_ok=True)
    kept = file.read_text(encoding="utf-8") if file.exists() else ""
    changes = list(unified_diff(kept.splitlines(), text.splitlines(), "kept", "now", n=1))
    assert not changes, "\n".join(["`make golden` accepts this:", *changes[:80]])


def test_no_golden_file_is_left_over() -> None:
    expected = {golden_file(n, ending).name for n in NAMES for ending in (".txt", ".scales.txt")}
    assert {path.name for path in FOLDER.glob("*.txt")} <= expected
