"""Lowering of sft and dpo stages: exact arguments of TRL's own configurations, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import JobDraft, StageBackend, StageView
from agentc.kinds import kind_named
from agentc.kinds.field import Json
from agentc_backends.trainers.trl.backend import DPO, SFT

FIELDS = json.loads((Path(__file__).parent / "fields_1.16.0.json").read_text())
"""Names of the fields of TRL's dataclasses; tests/torch/trl compares them with the package."""

BASE: dict[str, dict[str, Json]] = {
    "sft": {"lr": 2e-5, "global_batch": 64, "max_length": 4096},
    "dpo": {"lr": 1e-6, "global_batch": 32, "max_length": 4096, "beta": 0.1},
}
CASES = [
    pytest.param(SFT, "SFTConfig", id="sft"),
    pytest.param(DPO, "DPOConfig", id="dpo"),
]


def lower(backend: StageBackend, **settings: Json) -> tuple[JobDraft, StageView]:
    kind = kind_named(backend.kind)
    assert kind is not None
    view = StageView(
        table=(*kind.fields, *backend.options),
        values={**BASE[backend.kind], **settings},
        kind=backend.kind,
        inputs={"model": ("base",), "data": ("rows",)},
    )
    (draft,) = backend.lower(view, None)  # type: ignore[arg-type]
    return draft, view


def arguments(backend: StageBackend, **settings: Json) -> dict[str, Any]:
    draft, view = lower(backend, **settings)
    assert view.refusals == []
    found = draft.config["arguments"]
    assert isinstance(found, dict)
    return found


def refused(backend: StageBackend, **settings: Json) -> dict[str, str]:
    _, view = lower(backend, **settings)
    return {refusal.path: refusal.reason for refusal in view.refusals}


@pytest.mark.parametrize(("backend", "config"), CASES)
def test_every_argument_is_a_field_of_the_library(backend: StageBackend, config: str) -> None:
    settings: dict[str, Json] = {"lora": {"rank": 4}, "save_every": 5, "max_steps": 10}
    if backend is DPO:
        settings |= {"nll_weight": 0.1, "label_smoothing": 0.1}
    assert set(arguments(backend, **settings)) <= set(FIELDS[config])


def test_the_paper_settings_of_eto() -> None:
    sft = arguments(
        SFT,
        epochs=3,
        micro_batch=4,
        processes=4,
        scheduler="cosine",
        warmup_ratio=0.03,
        dtype="bfloat16",
        gradient_checkpointing=True,
        seed=42,
    )
    expected = {
        "learning_rate": 2e-5,
        "num_train_epochs": 3,
        "max_steps": -1,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 4,
        "lr_scheduler_type": "cosine",
        "warmup_steps": 0.03,
        "bf16": True,
        "gradient_checkpointing": True,
        "seed": 42,
        "weight_decay": 0.0,
        "adam_beta1": 0.9,
        "adam_beta2": 0.999,
        "max_grad_norm": 1.0,
        "max_length": 4096,
    }
    assert expected.items() <= sft.items()
    dpo = arguments(DPO, beta=0.5, micro_batch=2, processes=4)
    assert dpo["beta"] == 0.5
    assert dpo["gradient_accumulation_steps"] == 4
    assert (dpo["loss_type"], dpo["loss_weights"]) == (["sigmoid"], [1.0])


def test_no_default_of_the_library_that_differs_is_left_to_it() -> None:
    """TRL's own defaults for these would change what is computed."""
    for backend in (SFT, DPO):
        found = arguments(backend)
        assert found["bf16"] is False
        assert found["gradient_checkpointing"] is False
        assert found["logging_nan_inf_filter"] is False
        assert found["report_to"] == "none"
        assert found["max_length"] == 4096


@pytest.mark.parametrize(("backend", "config"), CASES)
def test_micro_batch_is_the_whole_local_batch_unless_given(
    backend: StageBackend, config: str
) -> None:
    found = arguments(backend, global_batch=24, processes=2)
    assert found["per_device_train_batch_size"] == 12
    assert found["gradient_accumulation_steps"] == 1
    draft, _ = lower(backend, global_batch=24, processes=2)
    assert draft.processes == 2
    assert draft.placement == {"processes": 2}


@pytest.mark.parametrize(("backend", "config"), CASES)
def test_batches_that_do_not_divide_are_refused(backend: StageBackend, config: str) -> None:
    assert (
        "does not divide the 16 rows"
        in (refused(backend, global_batch=64, processes=4, micro_batch=3)["micro_batch"])
    )
    assert (
        "cannot share a global_batch of 10"
        in (refused(backend, global_batch=10, processes=4)["processes"])
    )
    _, view = lower(backend, global_batch=12, micro_batch=5)
    assert view.refusals[0].fix == "set micro_batch to a divisor of 12: 1, 2, 3, 4, 6, 12"


def test_warm_up_that_would_be_ignored_or_misread_is_refused() -> None:
    assert "no warm-up" in refused(SFT, scheduler="constant", warmup_ratio=0.1)["warmup_ratio"]
    assert "below 1" in refused(SFT, warmup_ratio=1.0)["warmup_ratio"]
    assert refused(SFT, scheduler="constant_with_warmup", warmup_ratio=0.1) == {}


def test_packing_is_refused_by_name() -> None:
    assert "does not pack" in refused(SFT, packing=True)["packing"]


@pytest.mark.parametrize(
    ("settings", "types", "weights"),
    [
        ({}, ["sigmoid"], [1.0]),
        ({"nll_weight": 0.2}, ["sigmoid", "sft"], [1.0, 0.2]),
        ({"mean_log_prob": True}, ["sigmoid_norm"], [1.0]),
        ({"mean_log_prob": True, "nll_weight": 1.0}, ["sigmoid_norm", "sft"], [1.0, 1.0]),
        ({"loss": "hinge"}, ["hinge"], [1.0]),
        ({"loss": "ipo", "mean_log_prob": True}, ["ipo"], [1.0]),
        ({"label_smoothing": 0.1}, ["sigmoid", "robust"], [1.8, -0.8]),
        (
            {"label_smoothing": 0.25, "nll_weight": 0.5},
            ["sigmoid", "robust", "sft"],
            [1.5, -0.5, 0.5],
        ),
    ],
)
def test_preference_losses(
    settings: dict[str, Json], types: list[str], weights: list[float]
) -> None:
    found = arguments(DPO, **settings)
    assert found["loss_type"] == types
    assert found["loss_weights"] == pytest.approx(weights)
    assert found["label_smoothing"] == settings.get("label_smoothing", 0.0)


@pytest.mark.parametrize(
    ("settings", "rules"),
    [
        ({}, {"on": "chosen", "reduction": "token"}),
        ({"nll_on": "whole"}, {"on": "whole", "reduction": "token"}),
        ({"nll_reduction": "token"}, {"on": "chosen", "reduction": "token"}),
        ({"nll_reduction": "row"}, {"on": "chosen", "reduction": "row"}),
        ({"nll_on": "whole", "nll_reduction": "row"}, {"on": "whole", "reduction": "row"}),
    ],
)
def test_how_the_likelihood_counts(settings: dict[str, Json], rules: Json) -> None:
    draft, _ = lower(DPO, nll_weight=0.1, **settings)
    assert draft.config["nll"] == rules
    draft, view = lower(DPO, **settings)
    assert draft.config["nll"] is None
    assert not {"nll_on", "nll_reduction"} & view.read


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"loss": "ipo"}, "loss"),
        ({"loss": "hinge", "mean_log_prob": True}, "mean_log_prob"),
        ({"loss": "hinge", "label_smoothing": 0.1}, "label_smoothing"),
        ({"loss": "ipo", "mean_log_prob": True, "label_smoothing": 0.1}, "label_smoothing"),
        ({"mean_log_prob": True, "label_smoothing": 0.1}, "label_smoothing"),
        ({"label_smoothing": 0.5}, "label_smoothing"),
    ],
)
def test_what_trl_cannot_compute_is_refused_by_name(settings: dict[str, Json], path: str) -> None:
    assert list(refused(DPO, **settings)) == [path]


def test_masks_are_given_to_the_program() -> None:
    draft, _ = lower(SFT, loss_on="after_prompt", truncation="right", max_length=99)
    assert draft.config["mask"] == {
        "loss_on": "after_prompt",
        "max_length": 99,
        "truncation": "right",
    }
    draft, _ = lower(DPO, score_on="completion")
    assert draft.config["mask"] == {
        "loss_on": "completion",
        "max_length": 4096,
        "truncation": "error",
    }


def test_how_a_model_lies_in_memory_is_placement_and_named_only_where_it_is_not_plain() -> None:
    for backend in (SFT, DPO):
        plain, _ = lower(backend)
        assert plain.placement == {"processes": 1}
        draft, view = lower(backend, sharding="full", offload=True, attention="eager", processes=2)
        assert view.refusals == []
        assert draft.placement == {
            "processes": 2,
            "sharding": "full",
            "offload": True,
            "attention": "eager",
        }
        assert view.identity() == lower(backend)[1].identity()


def test_what_is_whole_is_not_offloaded() -> None:
    assert "whole" in refused(SFT, offload=True)["offload"]
    assert refused(DPO, offload=True, sharding="optimizer") == {}


def test_flash_attention_takes_types_of_16_bits() -> None:
    assert "16 bits" in refused(SFT, attention="flash")["attention"]
    assert refused(SFT, attention="flash", dtype="bfloat16") == {}


def test_type_of_the_saved_weights_enters_the_identity_where_it_is_said() -> None:
    draft, view = lower(DPO)
    assert draft.config["save_dtype"] == "auto"
    assert "save_dtype" not in view.identity()
    draft, view = lower(DPO, save_dtype="bfloat16")
    assert draft.config["save_dtype"] == "bfloat16"
    assert view.identity()["save_dtype"] == "bfloat16"


def test_lora_is_whole_or_absent() -> None:
    assert lower(SFT)[0].config["lora"] is None
    assert lower(SFT, lora={"rank": 4})[0].config["lora"] == {
        "rank": 4,
        "alpha": 16.0,
        "dropout": 0.0,
        "targets": [],
    }
