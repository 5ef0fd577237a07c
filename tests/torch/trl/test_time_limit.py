"""A training near its time limit saves, stops, and ends later with the bytes of an uncut one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.torch.trl.jobs import (
    launch,
    limited,
    pairs,
    run_here,
    small_model,
    steps,
    trainer_job,
    trajectories,
    write_rows,
)

from agentc_backends.trainers.common.checkpoints import assumed_save_seconds, newest_complete
from agentc_backends.trainers.common.checks import TrainingOutOfTimeError

SETTINGS: dict[str, Any] = {"epochs": 2, "save_every": 50, "global_batch": 8, "micro_batch": 2}
STEPS = 10


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model"))


def inputs_of(kind: str, model: Path, root: Path) -> dict[str, list[Path]]:
    name, rows = ("trajectories", trajectories(36)) if kind == "sft" else ("pairs", pairs(36))
    return {"model": [model], "data": [write_rows(root / "rows", f"{name}.jsonl", rows)]}


def line_of(root: Path) -> Any:
    return json.loads((root / "progress.json").read_text())


def finished(root: Path) -> bytes:
    return (root / "data" / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("kind", "extra"), [("sft", {}), ("dpo", {}), ("sft", {"lora": {"rank": 4, "dropout": 0.2}})]
)
def test_cut_by_its_limit_it_ends_with_the_bytes_of_an_uncut_training(
    kind: str, extra: dict[str, Any], model: Path, tmp_path: Path
) -> None:
    inputs = inputs_of(kind, model, tmp_path)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run_here(trainer_job(whole, kind, inputs, **SETTINGS, **extra))
    job = trainer_job(cut, kind, inputs, **SETTINGS, **extra)
    for step in (1, 2, 3):  # in the middle of an epoch
        with pytest.raises(TrainingOutOfTimeError, match=f"at step {step} of {STEPS}"):
            run_here(limited(job, 0))
        line = line_of(cut)
        assert (line["done"], line["total"], line["out_of_time"]) == (step, STEPS, True)
        assert newest_complete(cut / "work", "checkpoint-*") == cut / "work" / f"checkpoint-{step}"
        assert list((cut / "data").iterdir()) == []
    run_here(limited(job, None))
    assert finished(cut) == finished(whole)
    assert [line["step"] for line in steps(cut)] == list(range(1, STEPS + 1))


def test_measured_save_takes_the_place_of_the_cautious_guess(model: Path, tmp_path: Path) -> None:
    """Six seconds are too few for a save that nobody has measured, and enough for a small one."""
    inputs = inputs_of("sft", model, tmp_path)
    job = trainer_job(tmp_path / "job", "sft", inputs, **SETTINGS)
    with pytest.raises(TrainingOutOfTimeError, match="at step 1 of"):
        run_here(limited(job, 6))
    kept = tmp_path / "job" / "work" / "save_seconds.json"
    assert 0 < json.loads(kept.read_text()) < 6
    run_here(limited(job, 3600))
    assert len(steps(tmp_path / "job")) == STEPS
    assert not line_of(tmp_path / "job").get("out_of_time")


def test_guess_grows_with_what_is_trained() -> None:
    import torch

    layer = torch.nn.Linear(1000, 1000, bias=False)
    assert assumed_save_seconds(layer) == pytest.approx(10 + 12e6 / 1e8)
    layer.requires_grad_(False)
    assert assumed_save_seconds(layer) == 10


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("processes", [1, 2])
def test_all_processes_stop_alike(processes: int, model: Path, tmp_path: Path) -> None:
    inputs = inputs_of("sft", model, tmp_path)
    settings = {**SETTINGS, "processes": processes}
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    status, out, err = launch(trainer_job(whole, "sft", inputs, **settings))
    assert status == 0, out + err
    job = trainer_job(cut, "sft", inputs, **settings)
    status, out, err = launch(limited(job, 0))
    # A launcher takes 75 for a failure; the wrapper reads the progress line.
    assert status == (75 if processes == 1 else 0), out + err
    assert "trl.sft: out of time at step 1 of 10" in err
    assert line_of(cut)["out_of_time"] is True
    assert list((cut / "data").iterdir()) == []
    status, out, err = launch(limited(job, None))
    assert status == 0, out + err
    assert finished(cut) == finished(whole)
