"""Jobs that request GPUs whose torch sees none: they fail, and say what torch and driver are."""

from __future__ import annotations

import asyncio
import importlib
import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from tests.support.patience import PATIENCE_S
from tests.torch.trl.jobs import make_job, small_model, start, trainer_job, trajectories, write_rows

from agentc.program.job import Job
from agentc_backends.job_device import NoGpuError, job_device, visible_device

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="torch sees a GPU here")

OTHERS = (
    ("agentc_backends.trainers.online_rl.job_online", "train"),
    ("agentc_backends.trainers.online_rl.job_offline", "train"),
    ("agentc_backends.agents.rank.job_value_head", "rank"),
)


def with_gpus(file: Path, gpus: int) -> Path:
    spec = json.loads(file.read_text())
    file.write_text(json.dumps({**spec, "gpus": gpus}))
    return file


def test_the_message_names_torch_driver_and_visible_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = make_job(tmp_path, "sft", {}, {})
    assert job_device(Job(file)) == visible_device() == torch.device("cpu")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with pytest.raises(NoGpuError) as failed:
        job_device(Job(with_gpus(file, 2)))
    for words in (
        "requests 2 GPUs, and torch sees none",
        f"torch {torch.__version__}",
        f"torch.version.cuda {torch.version.cuda}",
        "NVIDIA driver",
        "CUDA_VISIBLE_DEVICES '0,1'",
        "`placement: {gpus: 0}`",
    ):
        assert words in str(failed.value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sft", "dpo", "critic"])
def test_a_training_fails_and_leaves_no_weights(kind: str, tmp_path: Path) -> None:
    model = small_model(tmp_path / "model")
    data = write_rows(tmp_path / "rows", "trajectories.jsonl", trajectories(8))
    file = trainer_job(tmp_path / "job", kind, {"model": [model], "data": [data]}, max_steps=1)
    process = start(with_gpus(file, 1))
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, said
    assert "the job requests 1 GPU, and torch sees none" in said
    assert "Traceback" not in said
    assert list((file.parent / "data").iterdir()) == []


@pytest.mark.parametrize(("program", "work"), OTHERS)
def test_other_jobs_of_torch_fail_before_they_read_anything(
    program: str, work: str, tmp_path: Path
) -> None:
    job = Job(with_gpus(make_job(tmp_path, "job", {}, {}), 1))
    with pytest.raises(NoGpuError):
        asyncio.run(getattr(importlib.import_module(program), work)(job))
