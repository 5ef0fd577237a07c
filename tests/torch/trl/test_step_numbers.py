"""Every number of logs/steps.jsonl is what the rows of its steps give by hand: also in the last
step of an epoch, which empty rows fill up, and however a step is cut into micro-batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.support.by_hand import STILL, dpo_lines, sft_lines
from tests.support.training_job import windows
from tests.torch.trl.jobs import (
    lowered,
    make_job,
    pairs,
    run_here,
    small_model,
    steps,
    trainer_job,
    trajectories,
    write_rows,
)
from tests.torch.trl.programs import run_program

ROWS = 11
SETTINGS: dict[str, Any] = {"epochs": 2, "lr": STILL, "global_batch": 4}
TIMES = {"step", "lr", "tokens_per_s", "grad_norm"}
"""What a forward by hand does not give; other tests hold the rate and the norm."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def expected(
    model: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, list[dict[str, float]]], dict[str, dict[str, list[Path]]]]:
    """(the numbers of each step, the inputs of a job) for both kinds."""
    root = tmp_path_factory.mktemp("rows")
    reference = small_model(tmp_path_factory.mktemp("reference"), seed=7)
    order = {"global_batch": 4, "epochs": 2}
    config = {kind: lowered(kind, **SETTINGS)[0] for kind in ("sft", "dpo")}
    lines = {
        "sft": [
            {name: value for name, value in line.items() if name != "trained_tokens"}
            for line in sft_lines(model, trajectories(ROWS), config["sft"]["mask"], **order)
        ],
        "dpo": dpo_lines(
            model, reference, pairs(ROWS), config["dpo"]["mask"], beta=0.1, nll_weight=0.5, **order
        ),
    }
    inputs = {
        "sft": {
            "model": [model],
            "data": [write_rows(root / "sft", "trajectories.jsonl", trajectories(ROWS))],
        },
        "dpo": {
            "model": [model],
            "reference": [reference],
            "data": [write_rows(root / "dpo", "pairs.jsonl", pairs(ROWS))],
        },
    }
    return lines, inputs


def extra(kind: str) -> dict[str, Any]:
    return {"nll_weight": 0.5} if kind == "dpo" else {}


def assert_by_hand(root: Path, lines: list[dict[str, float]], every: int = 1) -> None:
    expected = windows(lines, every)
    found = {line["step"]: line for line in steps(root)}
    assert found.keys() == expected.keys()
    for number, line in found.items():
        values = {name: value for name, value in line.items() if name not in TIMES}
        assert values == pytest.approx(expected[number], rel=2e-4, abs=2e-5), number


@pytest.mark.parametrize("kind", ["sft", "dpo"])
@pytest.mark.parametrize("micro_batch", [4, 2, 1])
def test_each_number_is_what_the_rows_of_its_step_give(
    expected: Any, tmp_path: Path, kind: str, micro_batch: int
) -> None:
    """11 rows: the last step of an epoch holds 3 of 4."""
    lines, inputs = expected
    settings = {**SETTINGS, **extra(kind), "micro_batch": micro_batch}
    run_here(trainer_job(tmp_path, kind, inputs[kind], **settings))
    assert_by_hand(tmp_path, lines[kind])


@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_a_line_of_several_steps_is_their_mean(expected: Any, tmp_path: Path, kind: str) -> None:
    lines, inputs = expected
    settings = {**SETTINGS, **extra(kind), "log_every": 3, "micro_batch": 2}
    run_here(trainer_job(tmp_path, kind, inputs[kind], **settings))
    assert_by_hand(tmp_path, lines[kind], every=3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_several_processes_report_the_same_numbers(
    expected: Any, tmp_path: Path, kind: str
) -> None:
    lines, inputs = expected
    settings = {**SETTINGS, **extra(kind), "processes": 2, "micro_batch": 2}
    status, out, err = run_program(trainer_job(tmp_path, kind, inputs[kind], **settings))
    assert status == 0, out + err
    assert_by_hand(tmp_path, lines[kind])


def test_a_resumed_run_counts_on_from_its_checkpoint(tmp_path: Path) -> None:
    """Also where that lies between two lines: they are no record of the steps after the last."""
    from types import SimpleNamespace

    from agentc.program.job import Job
    from agentc_backends.trainers.trl.trainer_base import Reporter

    job = Job(make_job(tmp_path, "sft", {}, {}))
    (job.logs / "steps.jsonl").write_text('{"num_tokens": 30.0, "step": 2}\n')
    reporter = Reporter(job, iter([10, 20, 40, 80, 160]))
    state = SimpleNamespace(global_step=3, max_steps=5, is_world_process_zero=True)
    reporter.on_train_begin(None, state, None)
    state.global_step = 4
    reporter.on_log(None, state, None, {"loss": 1.0, "learning_rate": 0.1})
    assert [line["num_tokens"] for line in steps(tmp_path)] == [30, 150]
