"""What the papers measure, each as a fragment of a spec: it compiles to a plan that makes what the
paper's table or figure is read from, without an error and without a warning.

A fragment's head says of what paper and part it is, and which stages make what (`# read:`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.model_folder import write_model_folder

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.diagnostics import render_text

HERE = Path(__file__).parent
FRAGMENTS = sorted((HERE / "fragments").glob("*.yaml"))
TRAJECTORIES = """[{"id": "webshop_7", "reward": 1.0, "conversations": [
    {"from": "human", "value": "Shop."}, {"from": "gpt", "value": "OK"},
    {"from": "human", "value": "A lamp."}, {"from": "gpt", "value": "Action: search[lamp]"}]}]"""


TRAINING = {"max_length": 2048, "global_batch": 16, "processes": 1, "lr": 1e-5}


def whole(fragment: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    """The fragment within the common spec; entries of a section stand side by side."""
    trains = any(f"'kind': '{kind}'" in str(fragment) for kind in ("sft", "dpo"))
    merged = {**base, "defaults": TRAINING if trains else {"seed": 0}}
    for section, entries in fragment.items():
        merged[section] = {**merged.get(section, {}), **entries}
    return merged


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.stem)
def test_what_the_papers_measure_can_be_written(path: Path, tmp_path: Path) -> None:
    text = path.read_text("utf-8")
    base = yaml.safe_load((HERE / "base.yaml").read_text("utf-8"))
    (tmp_path / "trajectories.json").write_text(TRAJECTORIES, "utf-8")
    write_model_folder(tmp_path / "model")
    spec = tmp_path / "probe.yaml"
    spec.write_text(yaml.safe_dump(whole(yaml.safe_load(text), base), sort_keys=False), "utf-8")
    found = compile_spec(spec, {}, load_backends())
    assert render_text(found.diagnostics) == ""
    assert found.plan is not None
    made = {(job.draft.produces, job.stage) for job in found.plan.jobs}
    head = re.match(r"# (?P<part>\S.*\.)\n# read: (?P<read>.+)\n", text)
    assert head is not None, "a fragment says what it is, and what is read"
    for each in head["read"].split(", "):
        stage, produces = each.rsplit(" ", 1)
        assert (produces, stage) in made
