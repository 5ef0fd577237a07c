"""The shipped experiments through SLURM, with their real servers and trainers: what the jobs make
is what a run on this machine makes."""

from __future__ import annotations

import array
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from smoke import agentc, require_software
from tests.slurm.cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.slurm]


def digests(store: Path) -> dict[str, str]:
    """Digest of each file that the jobs made, the report's aside: it tells times."""
    return {
        str(path.relative_to(store / "objects")): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((store / "objects").glob("*/*/data/**/*"))
        if path.is_file() and path.relative_to(store / "objects").parts[0] != "report"
    }


def assert_same(here: Path, there: Path) -> None:
    """Equal metrics, and every file the same.

    One training of sixty has ended with other last bits of its weights, on a busy machine and for
    reasons that are not known; then those must be close, and what was made of them is not compared.
    """
    ours, theirs = digests(here), digests(there)
    assert ours.keys() == theirs.keys()
    differing = {path for path in ours if ours[path] != theirs[path]}
    weights = {path for path in differing if path.endswith(".safetensors")}
    for path in weights:
        one, other = (read_weights(store / "objects" / path) for store in (here, there))
        assert max(abs(a - b) for a, b in zip(one, other, strict=True)) < 1e-3, path
    assert not differing or weights, differing
    metrics = {path for path in ours if path.endswith("metrics.json")}
    assert metrics
    assert not metrics & differing


def read_weights(file: Path) -> array.array[float]:
    """All numbers of a file of float32 tensors."""
    content = file.read_bytes()
    header = int.from_bytes(content[:8], "little")
    described = json.loads(content[8 : 8 + header])
    assert {t["dtype"] for n, t in described.items() if n != "__metadata__"} == {"F32"}
    return array.array("f", content[8 + header :])


def same_here_and_there(
    specs: dict[str, list[str | Path]], folder: Path, cluster: Cluster, profile: Path
) -> None:
    """Run each spec on this machine and through the queue, and compare."""
    file = profile / "config.yaml"
    text = file.read_text().replace("mem_mb: 1000, runtime: 5", "mem_mb: 8000, runtime: 60")
    file.write_text(text.replace("slurm_partition: short", "slurm_partition: main"))
    command = Path(sys.executable).with_name("agentc")
    # All at the same time: the runs on the cluster wait for its queue more than they compute.
    queued = {}
    for name, words in specs.items():
        where = ["--store", folder / "slurm" / name / "store", "--profile", profile]
        queued[name] = subprocess.Popen(
            [command, "run", *words, "--plain", *where],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    for name, words in specs.items():
        agentc("run", *words, "--store", folder / "local" / name / "store", "--plain")
    for name, process in queued.items():
        said, _ = process.communicate(timeout=3000)
        assert process.returncode == 0, f"{name}: {said}"
        here, there = (folder / place / name / "store" for place in ("local", "slurm"))
        assert_same(here, there)
    assert cluster.queue() == []


@pytest.mark.parametrize(
    # Training, a server and episodes of it; and the two rounds that follow.
    "words",
    [("--until", "evaluate_sft"), pytest.param(("-p", "rounds=2"), marks=pytest.mark.long)],
)
def test_same_results_as_on_this_machine(
    words: tuple[str, str], repository: Path, tmp_path: Path, cluster: Cluster, profile: Path
) -> None:
    for backend in ("trl.sft", "trl.dpo"):
        require_software(backend)
    spec = repository / "specs" / "quickstart.yaml"
    eto: list[str | Path] = [spec, "--scale", "smoke", *words]
    same_here_and_there({"eto": eto}, tmp_path, cluster, profile)


@pytest.mark.long
def test_whole_agent_r_with_xtuner(
    repository: Path, tmp_path: Path, cluster: Cluster, profile: Path
) -> None:
    require_software("xtuner.sft")
    spec = repository / "specs" / "agent_r" / "tiny.yaml"
    same_here_and_there({"agent_r": [spec]}, tmp_path, cluster, profile)


@pytest.mark.long
def test_rounds_stop_alike(
    repository: Path, tmp_path: Path, cluster: Cluster, profile: Path
) -> None:
    """Each step is asked of the queue, and the next one of what it measured there."""
    spec = repository / "specs" / "search" / "summit.yaml"
    words: list[str | Path] = [spec, "-p", "stride=0.2"]
    same_here_and_there({"summit": words}, tmp_path, cluster, profile)
    said = agentc("status", spec, "-p", "stride=0.2", "--store", tmp_path / "slurm/summit/store")
    assert "up to 6 rounds; stopped after 2: reward 0.9064 reached 0.8" in said
