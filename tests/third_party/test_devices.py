"""Jobs on one machine with GPUs, through `agentc run`: each of a stranger's jobs writes down which
GPUs it saw, from its beginning to its end, and no two had one at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

SITE = Path(__file__).parent / "cards"
SPEC = "agentc: 1\nname: cards\nstages:\n"

pytestmark = pytest.mark.slow


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """Eight jobs: four that go on once all of them have begun, two that want two GPUs each, one
    that does not wait, and one that asks for none."""
    stage = "  {name}: {{kind: dataset, backend: cards, seed: {seed}{options}{placement}}}\n"
    text = SPEC
    for number in range(4):
        text += stage.format(
            name=f"one{number}", seed=number, options=", options: {together: 4}",
            placement=", placement: {gpus: 1, cpus: 1}",
        )  # fmt: skip
    for number in range(2):
        text += stage.format(
            name=f"two{number}", seed=10 + number, options="",
            placement=", placement: {gpus: 2, cpus: 1}",
        )  # fmt: skip
    text += stage.format(
        name="last", seed=20, options="", placement=", placement: {gpus: 1, cpus: 1}"
    )
    text += stage.format(name="none", seed=30, options="", placement="")
    (tmp_path / "spec.yaml").write_text(text)
    return tmp_path / "spec.yaml"


@pytest.fixture(autouse=True)
def environments(tmp_path: Path, repository: Path) -> Path:
    """Those that are there, and a place for the stranger's own."""
    shared = Path(os.environ.get("AGENTC_SOFTWARE", repository / ".agentc" / "software"))
    if not list(shared.glob("*/bin/python")):
        pytest.skip(f"no software stacks in {shared}; `make software` builds them")
    own = tmp_path / "software"
    own.mkdir()
    for place in shared.iterdir():
        (own / place.name).symlink_to(place)
    return own


def agentc(spec: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in ("CUDA_VISIBLE_DEVICES", "AGENTC_GPUS") and not name.startswith("SLURM_")
    }
    environ["PATH"] = os.defpath  # nobody asks the GPUs that are really there
    environ |= {"PYTHONPATH": str(SITE), "AGENTC_DEVICE_LOCKS": str(spec.parent / "locks")}
    environ |= {"AGENTC_SOFTWARE": str(spec.parent / "software")}
    return subprocess.run(
        [str(Path(sys.executable).with_name("agentc")), *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=spec.parent,
        timeout=PATIENCE_S,
        env={**environ, **variables},
    )


def test_no_two_jobs_see_one_gpu(spec: Path) -> None:
    done = agentc(spec, "run", "spec.yaml", "-j", "8", AGENTC_GPUS="4")
    assert done.returncode == 0, done.stdout + done.stderr
    at_work: dict[str, list[str]] = {}
    wants = {"one": 1, "two": 2, "las": 1, "non": 0}
    ended = most = 0
    for line in (spec.parent / "journal").read_text().splitlines():
        word, job, _, seen = line.split(" ")
        if word == "end":
            del at_work[job]
            ended += 1
            continue
        mine = [device for device in seen.split(",") if device]
        assert len(mine) == wants[job[:3]], line
        taken = [device for other in at_work.values() for device in other]
        assert not {*mine} & {*taken}, f"{line}: others have {at_work}"
        assert {*mine} <= {"0", "1", "2", "3"}
        at_work[job] = mine
        most = max(most, len(mine) + len(taken))
    assert (ended, most) == (8, 4), "the four that wait for each other had a GPU each, at once"


def test_more_than_there_are_is_refused_before_the_run(spec: Path) -> None:
    done = agentc(spec, "run", "spec.yaml", AGENTC_GPUS="1")
    assert done.returncode == 7
    assert "two0 requests 2 GPUs (spec.yaml:8), and this machine has 1 (0)" in done.stderr
    assert "lower placement.gpus" in done.stderr
    assert not (spec.parent / "journal").exists()
    checked = agentc(spec, "plan", "--preflight", "spec.yaml", "--offline", AGENTC_GPUS="1")
    assert checked.returncode == 7
    assert "two0 requests 2 GPUs (spec.yaml:8), and this machine has 1 (0)" in checked.stdout


def test_what_is_said_of_gpus_has_to_mean_some(spec: Path) -> None:
    done = agentc(spec, "run", "spec.yaml", AGENTC_GPUS="four")
    assert done.returncode == 2
    assert "AGENTC_GPUS=four is neither a number of GPUs nor a list" in done.stderr
