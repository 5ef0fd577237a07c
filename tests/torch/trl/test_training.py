"""The trainers' jobs end to end: what they write, that they learn, and that placement does not
change results."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentc.program.artifact_files import SCORED_FILE

pytest.importorskip("torch")

from tests.support.training_job import with_lost_gradient
from tests.torch.trl.jobs import (
    difference,
    facts,
    launch,
    pairs,
    run_here,
    small_model,
    steps,
    trainer_job,
    trajectories,
    weights,
    write_rows,
)
from tests.torch.trl.programs import run_program

from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.data.models.checkpoint import CheckpointError, require_lora_targets

CHECKPOINT_FILES = {
    "agentc_chat.json",
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}
Trained = Callable[..., Path]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def inputs(
    model: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, list[Path]]]:
    """20 rows: a global batch of 8 leaves a last step of 4."""
    root = tmp_path_factory.mktemp("rows")
    rows = write_rows(root / "sft", "trajectories.jsonl", trajectories(20))
    data = write_rows(root / "dpo", "pairs.jsonl", pairs(20))
    return {
        "sft": {"model": [model], "data": [rows]},
        "dpo": {"model": [model], "data": [data]},
    }


@pytest.fixture(scope="module")
def trained(
    inputs: dict[str, dict[str, list[Path]]], tmp_path_factory: pytest.TempPathFactory
) -> Trained:
    """Trains with settings (once for each) and gives the staging directory."""
    done: dict[str, Path] = {}

    def train(kind: str, **settings: Any) -> Path:
        name = json.dumps([kind, settings], sort_keys=True)
        if name not in done:
            root = tmp_path_factory.mktemp(kind)
            run_here(trainer_job(root, kind, inputs[kind], **settings))
            done[name] = root
        return done[name]

    return train


@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_the_loss_falls_and_the_artifact_is_a_plain_checkpoint(trained: Trained, kind: str) -> None:
    root = trained(kind, epochs=4)
    losses = [line["loss"] for line in steps(root)]
    assert losses[-1] < 0.9 * losses[0]
    assert {path.name for path in (root / "data").iterdir()} == {*CHECKPOINT_FILES, SCORED_FILE}


def test_dpo_starts_where_policy_and_reference_agree(trained: Trained) -> None:
    first = steps(trained("dpo", epochs=4))[0]
    assert first["loss"] == pytest.approx(math.log(2), abs=1e-5)
    assert first["rewards/margins"] == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_facts_and_steps(trained: Trained, kind: str) -> None:
    root = trained(kind, epochs=4)
    found = facts(root)
    assert found["rows"] == 20
    assert found["steps"] == 4 * math.ceil(20 / 8)
    assert found["world_size"] == 1
    assert (found["truncated"], found["dropped"]) == (0, 0)
    assert 0 < found["trained_tokens"] < found["tokens"]
    assert found["versions"]["trl"] == "1.16.0"
    assert [line["step"] for line in steps(root)] == list(range(1, found["steps"] + 1))
    progress = json.loads((root / "progress.json").read_text())
    assert (progress["done"], progress["total"]) == (found["steps"], found["steps"])
    assert progress["numbers"]["tokens_per_s"] > 0


@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_micro_batch_does_not_change_the_result(trained: Trained, kind: str) -> None:
    """It is a placement field: it never enters a key, so it must not enter the result. The last
    step of an epoch (4 rows of 8) is the hard case."""
    settings: dict[str, Any] = {"epochs": 2, "lr": 1e-3}
    if kind == "dpo":
        settings["nll_weight"] = 0.5
    whole = trained(kind, **settings)
    for micro in (1, 4):
        part = trained(kind, micro_batch=micro, **settings)
        assert difference(whole, part) < 2e-4
        for a, b in zip(steps(whole), steps(part), strict=True):
            assert a["loss"] == pytest.approx(b["loss"], abs=2e-4)
            assert a["grad_norm"] == pytest.approx(b["grad_norm"], rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_two_processes_are_two_and_train_the_same_weights(
    trained: Trained,
    inputs: dict[str, dict[str, list[Path]]],
    tmp_path: Path,
    kind: str,
) -> None:
    settings: dict[str, Any] = {"epochs": 2, "lr": 1e-3}
    if kind == "dpo":
        settings["nll_weight"] = 0.5
    one = trained(kind, **settings)
    # 20 rows, 3 a micro-batch, 2 processes: the last step is filled up with empty rows.
    both = {"processes": 2, "global_batch": 6, "micro_batch": 3}
    single = trained(kind, **{**settings, "global_batch": 6})
    job = trainer_job(tmp_path, kind, inputs[kind], **settings, **both)
    # By its launcher once.
    status, out, err = launch(job) if kind == "sft" else run_program(job)
    assert status == 0, out + err
    assert facts(tmp_path)["world_size"] == 2
    assert difference(single, tmp_path) < 2e-4
    for a, b in zip(steps(single), steps(tmp_path), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=2e-4)
        assert a["grad_norm"] == pytest.approx(b["grad_norm"], rel=2e-3)
        assert (a["lr"], a["num_tokens"]) == (b["lr"], b["num_tokens"])
    assert difference(one, tmp_path) > 1e-3


def test_same_seed_same_bits_other_seed_other_order(
    inputs: dict[str, dict[str, list[Path]]], trained: Trained, tmp_path: Path
) -> None:
    first = trained("sft", epochs=4)
    run_here(trainer_job(tmp_path / "again", "sft", inputs["sft"], epochs=4))
    run_here(trainer_job(tmp_path / "other", "sft", inputs["sft"], epochs=4, seed=1))
    assert difference(first, tmp_path / "again") == 0.0
    assert difference(first, tmp_path / "other") > 0.0


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"scheduler": "constant"}, [1, 1, 1, 1, 1, 1]),
        ({"scheduler": "linear"}, [1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]),
        (
            {"scheduler": "constant_with_warmup", "warmup_ratio": 0.3},  # ceil(1.8) = 2 steps
            [0, 0.5, 1, 1, 1, 1],
        ),
        (
            {"scheduler": "cosine", "warmup_ratio": 0.1},
            [0, *(0.5 + 0.5 * math.cos(math.pi * k / 5) for k in range(5))],
        ),
    ],
)
def test_learning_rate_of_each_step(
    trained: Trained, settings: dict[str, Any], expected: list[float]
) -> None:
    rates = [line["lr"] for line in steps(trained("sft", epochs=2, lr=1e-3, **settings))]
    assert rates == pytest.approx([1e-3 * share for share in expected])


def test_max_steps_and_fractional_epochs(trained: Trained) -> None:
    assert facts(trained("sft", max_steps=2))["steps"] == 2
    assert facts(trained("sft", epochs=0.5))["steps"] == 2  # ceil(0.5 * 3)


@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_lora_trains_adapters_and_writes_merged_weights(
    trained: Trained, model: Path, kind: str
) -> None:
    root = trained(kind, epochs=4, lora={"rank": 4, "targets": ["q_proj", "v_proj"]})
    assert {path.name for path in (root / "data").iterdir()} == {*CHECKPOINT_FILES, SCORED_FILE}
    before, after = weights(model.parent), weights(root)
    assert before.keys() == after.keys()
    changed = {name.split(".")[-2] for name in before if not before[name].equal(after[name])}
    assert changed == {"q_proj", "v_proj"}
    assert steps(root)[-1]["loss"] < steps(root)[0]["loss"]


@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_a_target_that_is_no_layer_ends_the_job(
    inputs: dict[str, dict[str, list[Path]]], tmp_path: Path, kind: str
) -> None:
    """PEFT would adapt q_proj alone, and say nothing of the other."""
    lora = {"rank": 4, "targets": ["q_proj", "v_porj"]}
    status, _, err = run_program(trainer_job(tmp_path, kind, inputs[kind], max_steps=1, lora=lora))
    assert (status, err.count("\n")) == (1, 1)
    assert "`lora.targets` names `v_porj`; the model has `q_proj`, `k_proj`, `v_proj`" in err
    assert "did you mean `v_proj`?" in err


def test_targets_are_checked_against_the_model_itself(model: Path) -> None:
    require_lora_targets(model, ["q_proj", "model.layers.0.mlp.up_proj"])
    for target, words in (
        ("lm_head", "leave `lm_head` out"),
        ("embed_tokens", "leave `embed_tokens` out"),
        ("mlp", "the model has `q_proj`"),
        ("model.layers.9.mlp.up_proj", "the model has `q_proj`"),
    ):
        with pytest.raises(CheckpointError, match=words):
            require_lora_targets(model, ["q_proj", target])


def test_merged_weights_act_as_the_adapters_did(
    inputs: dict[str, dict[str, list[Path]]], tmp_path: Path
) -> None:
    """Training on from a merged checkpoint starts at the loss that training had reached."""
    lora = {"rank": 8, "alpha": 32.0}
    run_here(trainer_job(tmp_path / "a", "sft", inputs["sft"], epochs=6, lora=lora, lr=1e-2))
    following = {**inputs["sft"], "model": [tmp_path / "a" / "data"]}
    run_here(trainer_job(tmp_path / "b", "sft", following, max_steps=3, lr=1e-9))
    reached = steps(tmp_path / "a")[-1]["loss"]
    untrained = steps(tmp_path / "a")[0]["loss"]
    mean = sum(line["loss"] for line in steps(tmp_path / "b")) / 3
    assert abs(mean - reached) < 0.2 * (untrained - reached)


def test_a_separate_reference_is_used(
    trained: Trained, inputs: dict[str, dict[str, list[Path]]], tmp_path: Path
) -> None:
    reference = trained("sft", epochs=4) / "data"
    run_here(trainer_job(tmp_path, "dpo", {**inputs["dpo"], "reference": [reference]}, max_steps=1))
    assert abs(steps(tmp_path)[0]["rewards/margins"]) > 1e-3


def test_bfloat16_computes_in_bfloat16_and_keeps_float32_weights(trained: Trained) -> None:
    from accelerate.state import AcceleratorState

    exact = trained("sft", epochs=2)
    # The library keeps one precision for a process.
    AcceleratorState._reset_state()
    try:
        rounded = trained("sft", epochs=2, dtype="bfloat16")
    finally:
        AcceleratorState._reset_state()
    assert 0 < difference(exact, rounded) < 0.1
    assert {str(tensor.dtype) for tensor in weights(rounded).values()} == {"torch.float32"}


def test_gradient_checkpointing_changes_no_result(trained: Trained) -> None:
    plain = trained("sft", epochs=2)
    assert difference(plain, trained("sft", epochs=2, gradient_checkpointing=True)) < 1e-6


def test_rewards_and_errors_select_rows(model: Path, tmp_path: Path) -> None:
    rows = trajectories(12)
    rows[0] |= {"reward": 0.4}
    rows[1] |= {"reward": None, "end": "limit"}
    rows[2] |= {"reward": None, "end": "error"}
    data = write_rows(tmp_path / "rows", "trajectories.jsonl", rows)
    inputs = {"model": [model], "data": [data]}
    run_here(trainer_job(tmp_path / "all", "sft", inputs, max_steps=1))
    run_here(trainer_job(tmp_path / "good", "sft", inputs, max_steps=1, min_reward=0.5))
    assert (facts(tmp_path / "all")["rows"], facts(tmp_path / "all")["errors_left_out"]) == (11, 1)
    good = facts(tmp_path / "good")
    assert (good["rows"], good["below_min_reward"], good["errors_left_out"]) == (9, 2, 1)


@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_with_nothing_to_train_on_the_model_moves_on(
    kind: str, model: Path, tmp_path: Path
) -> None:
    """Where the spec allows that; else it is a failure."""
    data = {
        "sft": write_rows(tmp_path / "sft", "trajectories.jsonl", trajectories(4, reward=0.0)),
        "dpo": write_rows(tmp_path / "dpo", "pairs.jsonl", []),
    }[kind]
    inputs = {"model": [model], "data": [data]}
    more = {"min_reward": 0.5} if kind == "sft" else {}
    status, _, err = run_program(trainer_job(tmp_path / "strict", kind, inputs, **more))
    assert status == 1
    assert "no rows to train on" in err
    job = trainer_job(tmp_path / "kept", kind, inputs, on_empty="keep_model", **more)
    status, _, err = run_program(job)
    assert status == 0, err
    out, found = tmp_path / "kept" / "data", facts(tmp_path / "kept")
    assert (found["kept_model"], found["steps"]) == (True, 0)
    assert "no rows to train on" in found["kept_because"]
    assert difference(model.parent, tmp_path / "kept") == 0
    assert {path.name for path in out.iterdir()} == CHECKPOINT_FILES
    check_artifact("Checkpoint", out, {}, {}, found)


def test_several_data_inputs_are_joined(model: Path, tmp_path: Path) -> None:
    parts = [
        write_rows(tmp_path / "a", "trajectories.jsonl", trajectories(5)),
        write_rows(tmp_path / "b", "rows.jsonl", trajectories(4)),
    ]
    run_here(trainer_job(tmp_path / "job", "sft", {"model": [model], "data": parts}, max_steps=1))
    assert facts(tmp_path / "job")["rows"] == 9


def test_what_people_can_mend_is_a_message(model: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "rows", "trajectories.jsonl", trajectories(8))
    inputs = {"model": [model], "data": [data]}
    status, _, err = run_program(trainer_job(tmp_path / "long", "sft", inputs, max_length=16))
    assert status == 1
    assert "more than max_length 16" in err
    assert "Traceback" not in err


def test_a_diverging_run_stops_with_a_message(model: Path, tmp_path: Path) -> None:
    from agentc_backends.trainers.common.checks import TrainingDivergedError

    data = write_rows(tmp_path / "rows", "trajectories.jsonl", trajectories(8))
    job = trainer_job(
        tmp_path / "job",
        "sft",
        {"model": [model], "data": [data]},
        lr=1e30,
        max_grad_norm=0,
        epochs=20,
    )
    with pytest.raises(TrainingDivergedError, match="lower lr"):
        run_here(job)
    assert not list((tmp_path / "job" / "data").iterdir())


@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_a_gradient_that_is_lost_ends_the_run_before_the_loss_is(
    model: Path, tmp_path: Path, kind: str
) -> None:
    """Its norm would be written as `Infinity`, which is no JSON."""
    from agentc_backends.trainers.common.checks import TrainingDivergedError

    broken = with_lost_gradient(model, tmp_path / "model")
    rows = {
        "sft": write_rows(tmp_path / "sft", "trajectories.jsonl", trajectories(8)),
        "dpo": write_rows(tmp_path / "dpo", "pairs.jsonl", pairs(8)),
    }
    inputs = {"model": [broken], "reference": [broken], "data": [rows[kind]]}
    told = r"the loss is \d.* at step 1, grad_norm inf; lower lr"
    with pytest.raises(TrainingDivergedError, match=told):
        run_here(trainer_job(tmp_path / "job", kind, inputs))
    assert not (tmp_path / "job" / "logs" / "steps.jsonl").exists()
