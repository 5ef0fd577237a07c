"""One spec, one plan: whatever the machine, the path, the hash seed or the locale."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

_MAIN = "import sys; from agentc.cli import main; sys.exit(main())"


def compiled(spec: Path, out: Path, cwd: Path, **variables: str) -> bytes:
    """plan.json of a fresh process."""
    subprocess.run(
        [sys.executable, "-c", _MAIN, "bundle", "--bare", str(spec), "-o", str(out)],
        cwd=cwd,
        env={**os.environ, **variables},
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    return (out / "plan.json").read_bytes()


# Of every shipped spec tests/golden has the plan, and finds the same one in each run's hash seed.
@pytest.mark.parametrize(
    "name",
    [
        "quickstart.yaml",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("agent_r/multi_task.yaml", "eto/webshop.yaml", "sweet_rl/backend.yaml")
        ),
    ],
)
def test_same_bytes_everywhere(repository: Path, tmp_path: Path, name: str) -> None:
    here = repository / "specs" / name
    there = tmp_path / "a folder" / here.name
    there.parent.mkdir()
    for each in (here, *here.parent.glob("*.json")):  # with what it reads
        (there.parent / each.name).write_bytes(each.read_bytes())
    plans = {
        compiled(here, tmp_path / "1", repository, PYTHONHASHSEED="0"),
        compiled(there, tmp_path / "2", tmp_path, PYTHONHASHSEED="12345", TZ="Asia/Tokyo"),
        compiled(Path(there.name), tmp_path / "3", there.parent, LC_ALL="C", HOME="/nonexistent"),
    }
    assert len(plans) == 1
    text = plans.pop().decode()
    assert str(tmp_path) not in text
    assert str(repository) not in text
