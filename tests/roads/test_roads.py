"""The trace that draws roads sees what it should, and the page's roads are those of the code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.roads.follow import HERE, MARKERS, ROADS, ROOT, follow, watch_compile
from tests.roads.page import section
from tests.roads.reasons import reason_of

STATIONS = {
    "beta": ("agentc/front/bind_stage.py", "agentc_backends/trainers/trl/backend.py"),
    "tensor_parallel": (
        "agentc/backend_api/parallel.py",
        "agentc_backends/servers/vllm/backend.py",
    ),
    "max_depth": (
        "agentc_backends/environments/server/settings.py",
        "agentc_backends/environments/textcraft/backend.py",
    ),
}
ASIDE = "agentc_backends/data/pair/backend.py"
"""It lowers another stage of the same spec."""


@pytest.mark.slow
def test_compiling_passes_these_stations(tmp_path: Path) -> None:
    seen = watch_compile(tmp_path)
    for name in MARKERS:
        hand = {module for module, how in seen[name].items() if how == "hand"}
        assert hand >= {"agentc/source/load.py", "agentc/backend_api/view.py", *STATIONS[name]}
        assert ASIDE not in hand
        assert all(map(reason_of, hand))
        # What it becomes is in the plan, with no value of the others in its job's settings.
        jobs = json.loads((tmp_path / "plan" / "plan.json").read_text(encoding="utf-8"))["jobs"]
        (job,) = (job for job in jobs if job["stage"] == ROADS[name])
        assert str(MARKERS[name]) in json.dumps(job)


def test_a_program_is_watched(tmp_path: Path) -> None:
    """Where nothing holds the value, nothing is noted."""
    (tmp_path / "markers.json").write_text('{"here": 20011, "nowhere": 20021}')
    command = [sys.executable, str(HERE / "watch.py"), str(tmp_path), "-m", "agentc.runtime.job"]
    subprocess.run([*command, "--plan", "20011"], cwd=ROOT, check=False, capture_output=True)
    (notes,) = tmp_path.glob("agentc.runtime.job.*.json")
    assert json.loads(notes.read_text()) == {
        "here": {"agentc/runtime/job.py": "hand"},
        "nowhere": {},
    }


@pytest.mark.slow
@pytest.mark.long
def test_the_page_is_current(tmp_path: Path) -> None:
    """`python -m tests.roads --write` writes it anew."""
    page = (ROOT / "notes" / "roads.md").read_text(encoding="utf-8")
    assert "\n".join(section(follow(tmp_path))) in page
