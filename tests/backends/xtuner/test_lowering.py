"""Lowering of sft stages to XTuner's settings, the file that is written from them, and refusals."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from agentc.backend_api import JobDraft, StageView
from agentc.kinds import kind_named
from agentc.kinds.field import Json
from agentc.program.job import JobConfig
from agentc_backends.trainers.trl.backend import SFT as TRL
from agentc_backends.trainers.xtuner.backend import SFT
from agentc_backends.trainers.xtuner.config_file import MachineSettings, deepspeed, render, wrapper
from agentc_backends.trainers.xtuner.schedule import length_of
from agentc_backends.trainers.xtuner.settings import XtunerSettings

BASE: dict[str, Json] = {"lr": 2e-5, "global_batch": 64, "max_length": 4096}
MACHINE = MachineSettings(
    model="/m", rows="/r", work_dir="/w", job_file="/j", gpu=False, processes=1
)


def lower(**settings: Json) -> tuple[JobDraft, StageView]:
    kind = kind_named("sft")
    assert kind is not None
    view = StageView(
        table=(*kind.fields, *SFT.options),
        values={**BASE, **settings},
        kind="sft",
        inputs={"model": ("base",), "data": ("rows",)},
    )
    (draft,) = SFT.lower(view, None)  # type: ignore[arg-type]
    return draft, view


def settings_of(**settings: Json) -> XtunerSettings:
    draft, view = lower(**settings)
    assert view.refusals == []
    return JobConfig(draft.config).read_as(XtunerSettings, at="settings")


def refused(**settings: Json) -> dict[str, str]:
    _, view = lower(**settings)
    return {refusal.path: refusal.reason for refusal in view.refusals}


def text_of(settings: XtunerSettings, machine: MachineSettings = MACHINE, rows: int = 640) -> str:
    return render(settings, length_of(settings, rows, machine.processes), machine)


def test_the_published_recipe_of_agent_r() -> None:
    settings = settings_of(
        lr=2e-5,
        scheduler="cosine",
        warmup_ratio=0.03,
        global_batch=128,
        micro_batch=1,
        processes=8,
        epochs=3.0,
        max_length=8196,
        dtype="bfloat16",
        gradient_checkpointing=True,
        zero_stage=2,
    )
    assert (settings.batch_size, settings.accumulative_counts) == (1, 16)
    assert (settings.betas, settings.weight_decay, settings.max_norm) == (
        (0.9, 0.999),
        0.0,
        1.0,
    )
    machine = MachineSettings(
        model="/m", rows="/r", work_dir="/w", job_file="/j", gpu=True, processes=8
    )
    # 3 epochs of 1,280 rows are 30 steps: 480 micro-batches of each process, 16 of them warm-up.
    text = text_of(settings, machine, rows=1280)
    assert "max_iters = 480\n" in text
    assert "dict(type=LinearLR, start_factor=1e-05, by_epoch=False, begin=15, end=32)" in text
    assert "T_max=464" in text
    assert "max_norm=max_norm" in text
    assert "backend='nccl'" in text
    assert '"stage": 2' in deepspeed(settings)
    assert wrapper(settings, gpu=True) == "OptimWrapper"


def test_every_setting_changes_the_files() -> None:
    start = settings_of(zero_stage=1)
    other: dict[str, Any] = {
        "max_length": 128,
        "pack_to_max_length": True,
        "batch_size": 2,
        "accumulative_counts": 8,
        "max_epochs": 2.5,
        "max_steps": 7,
        "lr": 0.125,
        "betas": (0.5, 0.5),
        "weight_decay": 0.5,
        "max_norm": 0.5,
        "scheduler": "cosine",
        "warmup_ratio": 0.5,
        "dtype": "bfloat16",
        "use_activation_checkpointing": True,
        "seed": 9,
        "save_steps": 3,
        "log_steps": 5,
        "lora": {"rank": 4, "alpha": 8.0, "dropout": 0.0, "targets": ["q_proj"]},
        "attention": "eager",
        "zero_stage": 3,
        "offload": True,
    }
    # What XTuner saves is cast when it has trained.
    assert {*other, "save_dtype"} == {field.name for field in fields(start)}
    before = text_of(start) + deepspeed(start)
    for name, value in other.items():
        changed = replace(start, **{name: value})
        assert text_of(changed) + deepspeed(changed) != before, name


def test_sharding_is_a_stage_of_zero_and_decides_what_is_computed() -> None:
    assert settings_of().zero_stage is None
    assert settings_of(sharding="optimizer").zero_stage == 2
    draft, _ = lower(sharding="full")
    assert draft.extra_identity == {"zero_stage": 3}
    assert lower(zero_stage=3)[0].extra_identity == {}
    assert "is stage 3" in refused(sharding="full", zero_stage=2)["zero_stage"]
    assert refused(sharding="full", zero_stage=3) == {}


def test_what_is_divided_can_lie_in_the_memory_of_the_host() -> None:
    assert "nothing is divided" in refused(offload=True)["offload"]
    zero = json.loads(deepspeed(settings_of(offload=True, sharding="optimizer")))
    assert zero["zero_optimization"]["offload_optimizer"] == {"device": "cpu"}
    assert "offload_param" not in zero["zero_optimization"]
    zero = json.loads(deepspeed(settings_of(offload=True, sharding="full")))
    assert zero["zero_optimization"]["offload_param"] == {"device": "cpu"}


def test_the_file_is_python_without_leftovers() -> None:
    for settings in (
        settings_of(),
        settings_of(scheduler="constant", lora={"rank": 4}, dtype="bfloat16"),
        settings_of(scheduler="constant_with_warmup", warmup_ratio=0.1, max_grad_norm=0.0),
    ):
        names: set[str] = set()
        text = text_of(settings)
        code = compile(text, "config", "exec")
        names.update(code.co_names)
        assert "{" not in text
        imported = [
            word.strip(",")
            for line in text.splitlines()
            if line.startswith("from ")
            for word in line.split(" import ")[1].split()
        ]
        # mmengine would write an import that nothing uses into the configuration it saves.
        assert all(text.count(name) > 1 for name in imported), text


def test_a_cpu_gets_gloo_and_a_precision_of_its_own() -> None:
    settings = settings_of(dtype="bfloat16")
    assert wrapper(settings, gpu=False) == "CpuAmpOptimWrapper"
    assert wrapper(settings, gpu=True) == "AmpOptimWrapper"
    two = MachineSettings(
        model="/m", rows="/r", work_dir="/w", job_file="/j", gpu=False, processes=2
    )
    assert "device_ids=None" in text_of(settings, two)
    assert "device_ids" not in text_of(settings)


def test_clipping_is_off_where_the_spec_says_so() -> None:
    assert "clip_grad=None" in text_of(settings_of(max_grad_norm=0.0))
    # DeepSpeed would clip at 1 where no norm is given.
    assert "max_norm = 0.0" in text_of(settings_of(max_grad_norm=0.0, zero_stage=2))
    assert "clip_grad=dict" in text_of(settings_of(max_grad_norm=0.0, zero_stage=2))


def test_refusals_name_the_setting() -> None:
    assert "cannot share" in refused(processes=3)["processes"]
    assert "does not divide" in refused(micro_batch=48)["micro_batch"]
    assert "packed" in refused(packing=True, micro_batch=4)["micro_batch"]
    assert "no warm-up" in refused(scheduler="constant", warmup_ratio=0.1)["warmup_ratio"]
    assert "below 1" in refused(warmup_ratio=1.0)["warmup_ratio"]
    assert refused(packing=True) == {}


@pytest.mark.parametrize(("micro", "facts"), [(None, {}), (1, {}), (8, {"micro_batch": 8})])
def test_what_a_micro_batch_holds_is_part_of_the_result(
    micro: int | None, facts: dict[str, int]
) -> None:
    draft, _ = lower(micro_batch=micro)
    assert draft.extra_identity == facts
    assert lower(micro_batch=micro, processes=4)[0].extra_identity == facts


def test_the_masks_are_those_of_trl() -> None:
    kind = kind_named("sft")
    assert kind is not None
    for loss_on in ("all_replies", "after_prompt", "marked"):
        values = {**BASE, "loss_on": loss_on, "truncation": "right"}
        view = StageView(table=kind.fields, values=values, kind="sft", inputs={})
        (theirs,) = TRL.lower(view, None)  # type: ignore[arg-type]
        ours, _ = lower(loss_on=loss_on, truncation="right")
        assert ours.config["mask"] == theirs.config["mask"]
