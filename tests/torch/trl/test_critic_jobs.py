"""The critic's job end to end: what it writes, that it learns, what it never writes, and that
placement does not change results."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.torch.trl.jobs import (
    difference,
    facts,
    hidden_texts,
    pairs,
    run_here,
    small_model,
    steps,
    trainer_job,
    write_rows,
)
from tests.torch.trl.programs import run_program

from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.models.value_head import read_head

CANARY = "chest torch stick chest torch stick chest torch stick chest torch stick"
"""Words of the tests' tokenizer in an order that no conversation has."""
Inputs = dict[str, list[Path]]
Trained = Callable[..., Path]


def rewarded(count: int) -> list[dict[str, Any]]:
    """Pairs with what a `pair` stage says of their sides."""
    return [
        {**row, "chosen_id": f"{row['id']}#0", "rejected_id": f"{row['id']}#1",
         "chosen_reward": 1.0, "rejected_reward": 0.25}
        for row in pairs(count)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def inputs(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """20 pairs, so that a global batch of 8 leaves a last step of 4; every hidden text has the
    canary in it."""
    root = tmp_path_factory.mktemp("rows")
    hidden = [{**row, "text": f"{row['text']} {CANARY}"} for row in hidden_texts(20)]
    return {
        "model": [model],
        "data": [write_rows(root / "pairs", "pairs.jsonl", rewarded(20))],
        "privileged": [write_rows(root / "hidden", "privileged.jsonl", hidden)],
    }


@pytest.fixture(scope="module")
def trained(inputs: Inputs, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Trains with settings (once for each) and gives the staging directory."""
    done: dict[str, Path] = {}

    def train(without: tuple[str, ...] = (), **settings: Any) -> Path:
        name = json.dumps([without, settings], sort_keys=True)
        if name not in done:
            root = tmp_path_factory.mktemp("critic")
            given = {role: paths for role, paths in inputs.items() if role not in without}
            run_here(trainer_job(root, "critic", given, **settings))
            done[name] = root
        return done[name]

    return train


def said_of(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "data" / "agentc_critic.json").read_text())
    return found


def test_the_loss_falls_and_the_artifact_says_what_it_is(trained: Trained, model: Path) -> None:
    root = trained(epochs=4)
    lines = steps(root)
    assert lines[0]["loss"] == pytest.approx(math.log(2), abs=1e-5)
    assert lines[-1]["loss"] < 0.95 * lines[0]["loss"]
    assert lines[-1]["rewards/accuracies"] == 1.0
    check_artifact("CriticCheckpoint", root / "data", {}, {}, facts(root))
    assert said_of(root) == {
        "parameterisation": "log_ratio",
        "normalisation": "turn",
        "objective": "bradley_terry",
        "template": "In light that the final answer is: {privileged}.",
        "reference": "/".join(model.parts[-3:-1]),
        "template_at": "first_message",
        "reference_sees": "privileged",
        "beta": 0.1,
    }


def test_without_hidden_texts(trained: Trained) -> None:
    root = trained(("privileged",), epochs=1)
    assert (said_of(root)["template"], said_of(root)["reference_sees"]) == (None, "history")
    assert facts(root)["tokens"] < facts(trained(epochs=4))["tokens"]
    assert facts(root)["trained_tokens"] == facts(trained(epochs=4))["trained_tokens"]


def test_a_reference_that_sees_the_history_alone(trained: Trained) -> None:
    """It stands elsewhere from the first step on; its own rows have no hidden text."""
    first = steps(trained(epochs=1, reference_sees="history"))[0]
    assert abs(first["rewards/chosen"]) > 1e-4
    assert abs(steps(trained(epochs=4))[0]["rewards/chosen"]) < 1e-5


@pytest.mark.parametrize("normalisation", ["trajectory", "none"])
def test_normalisations_train_other_critics(trained: Trained, normalisation: str) -> None:
    root = trained(epochs=1, normalisation=normalisation)
    assert said_of(root)["normalisation"] == normalisation
    assert difference(root, trained(epochs=1)) > 1e-5


def test_nothing_of_a_hidden_text_is_written(trained: Trained, inputs: Inputs) -> None:
    """Not as text, and not as tokens: neither in the artifact nor in logs, facts and work."""
    encoder = load_encoder(inputs["model"][0])
    ids = encoder.tokenizer(f" {CANARY}", add_special_tokens=False)["input_ids"][2:-1]
    spelled = [json.dumps(ids)[1:-1], json.dumps(ids, separators=(",", ":"))[1:-1]]
    assert len(ids) > 8
    for root in (trained(epochs=4), trained(epochs=1, parameterisation="value_head")):
        for path in root.rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                assert CANARY.encode() not in content, path
                assert not any(each.encode() in content for each in spelled), path
    # What is compared with servers is there, and tokens are how it would show.
    scored = json.loads((trained(epochs=4) / "data" / "agentc_log_probs.json").read_text())
    assert len(scored["rows"]) == 8


@pytest.mark.parametrize("settings", [{"nll_weight": 0.5}, {"parameterisation": "value_head"}])
def test_micro_batch_does_not_change_the_result(trained: Trained, settings: dict[str, Any]) -> None:
    whole = trained(epochs=1, **settings)
    for micro in (1, 2, 4):
        part = trained(epochs=1, micro_batch=micro, **settings)
        for a, b in zip(steps(whole), steps(part), strict=True):
            assert a["loss"] == pytest.approx(b["loss"], abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"nll_weight": 0.5}, {"parameterisation": "value_head"}])
def test_two_processes_give_the_losses_of_one(
    trained: Trained, inputs: Inputs, tmp_path: Path, settings: dict[str, Any]
) -> None:
    """20 pairs, 3 a micro-batch, 2 processes: the last step is filled up with empty ones."""
    single = trained(epochs=1, global_batch=6, **settings)
    both = {"processes": 2, "global_batch": 6, "micro_batch": 3}
    job = trainer_job(tmp_path, "critic", inputs, epochs=1, **both, **settings)
    status, out, err = run_program(job)
    assert status == 0, out + err
    assert facts(tmp_path)["world_size"] == 2
    for a, b in zip(steps(single), steps(tmp_path), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], abs=1e-5)
    assert difference(single, tmp_path) < 2e-4


@pytest.mark.parametrize(
    "settings",
    [{"objective": "bradley_terry"}, {"objective": "binary_cross_entropy", "pooling": "last"}],
)
def test_a_value_head_learns_and_is_saved_apart(trained: Trained, settings: dict[str, Any]) -> None:
    root = trained(epochs=6, parameterisation="value_head", beta=1.0, lr=3e-3, **settings)
    losses = [line["loss"] for line in steps(root)]
    assert losses[-1] < 0.95 * losses[0]
    check_artifact("CriticCheckpoint", root / "data", {}, {}, facts(root))
    assert said_of(root)["pooling"] == settings.get("pooling", "mean")
    head = read_head(root / "data")
    assert (head.weight.shape, str(head.weight.dtype)) == ((1, 32), "torch.float32")
    assert not any(name.startswith("value_head") for name in _tensors(root))


def _tensors(root: Path) -> list[str]:
    from safetensors import safe_open

    with safe_open(root / "data" / "model.safetensors", framework="pt") as file:
        return list(file.keys())


@pytest.mark.parametrize("settings", [{}, {"parameterisation": "value_head"}])
def test_a_critic_that_was_cut_off_goes_on_to_the_same_bits(
    trained: Trained, inputs: Inputs, tmp_path: Path, settings: dict[str, Any]
) -> None:
    # A rate that does not depend on where the training ends.
    settings = {"epochs": 2, "save_every": 2, "scheduler": "constant", **settings}
    whole = trained(**settings)
    run_here(trainer_job(tmp_path, "critic", inputs, max_steps=4, **settings))
    kept = sorted(path.name for path in (tmp_path / "work").glob("checkpoint-*"))
    assert kept, "nothing to continue from"
    for path in (tmp_path / "data").iterdir():
        path.unlink()
    run_here(trainer_job(tmp_path, "critic", inputs, **settings))
    assert difference(whole, tmp_path) == 0.0
    if "parameterisation" in settings:
        one, other = (read_head(root / "data").weight for root in (whole, tmp_path))
        assert one.equal(other)


def test_rewards_beyond_one_are_no_probabilities(inputs: Inputs, tmp_path: Path) -> None:
    rows = [{**row, "chosen_reward": 14.0} for row in rewarded(4)]
    given = {**inputs, "data": [write_rows(tmp_path / "rows", "pairs.jsonl", rows)]}
    settings = {"parameterisation": "value_head", "objective": "binary_cross_entropy"}
    status, _, err = run_program(trainer_job(tmp_path / "job", "critic", given, **settings))
    assert status == 1
    assert "has the reward 14" in err
    assert "Traceback" not in err


def test_rows_that_are_too_long_with_their_hidden_text_are_counted(
    inputs: Inputs, tmp_path: Path
) -> None:
    longest = facts_of_lengths(inputs, tmp_path / "all")
    job = trainer_job(
        tmp_path / "job", "critic", inputs, max_steps=1, max_length=longest - 1, truncation="drop"
    )
    run_here(job)
    found = facts(tmp_path / "job")
    assert found["dropped"] > 0
    assert found["rows"] + found["dropped"] == 20


def facts_of_lengths(inputs: Inputs, root: Path) -> int:
    run_here(trainer_job(root, "critic", inputs, max_steps=1))
    longest: int = facts(root)["longest"]
    return longest
