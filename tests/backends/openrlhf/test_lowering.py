"""Lowering of sft and dpo stages: flags that OpenRLHF's commands have, and refusals by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import JobDraft, StageBackend, StageView, load_backends
from agentc.kinds import kind_named
from agentc.kinds.field import Json
from agentc.program.job import JobConfig
from agentc_backends.trainers.openrlhf.backend import DPO, SFT
from agentc_backends.trainers.openrlhf.session import TrainerSettings

FLAGS = json.loads((Path(__file__).parent / "flags_0.11.2.json").read_text())
"""Flags of OpenRLHF's two parsers; test_training.py compares them with the package."""

BASE: dict[str, dict[str, Json]] = {
    "sft": {"lr": 2e-5, "global_batch": 64, "max_length": 4096, "dtype": "bfloat16"},
    "dpo": {"lr": 1e-6, "global_batch": 32, "max_length": 4096, "dtype": "bfloat16", "beta": 0.1},
}
BOTH = pytest.mark.parametrize("backend", [SFT, DPO], ids=lambda backend: backend.id)


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


def flags_of(backend: StageBackend, **settings: Json) -> dict[str, list[str]]:
    """Values by flag, of settings that are accepted."""
    draft, view = lower(backend, **settings)
    assert view.refusals == []
    found: dict[str, list[str]] = {}
    words = draft.config["flags"]
    assert isinstance(words, list)
    for word in map(str, words):
        if word.startswith("--"):
            assert word not in found, "a flag is given twice"
            found[word] = []
        else:
            found[list(found)[-1]].append(word)
    return found


@BOTH
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"scheduler": "cosine", "warmup_ratio": 0.03, "gradient_checkpointing": True},
        {"lora": {"rank": 4, "targets": ["q_proj", "v_proj"]}, "micro_batch": 2, "processes": 4},
        {"max_grad_norm": 0, "weight_decay": 0.1, "adam_beta2": 0.95, "options": 3},
    ],
)
def test_openrlhf_has_every_flag_and_takes_its_values(
    backend: StageBackend, settings: dict[str, Any]
) -> None:
    if settings.pop("options", None):
        settings["zero_stage"] = 3
    if backend is DPO:
        settings |= {"nll_weight": 0.2, "label_smoothing": 0.1}
    known = FLAGS[backend.kind]
    for flag, values in flags_of(backend, **settings).items():
        assert flag in known
        wanted = known[flag]["values"]
        assert len(values) == wanted or (wanted == "*" and values), flag
        assert all(value in (known[flag]["choices"] or values) for value in values), flag
        if known[flag]["type"] == "int":
            assert all(str(int(value)) == value for value in values)


def test_ipo_of_the_paper_is_had_here_and_not_from_trl() -> None:
    assert "--model.ipo_enable" in flags_of(DPO, loss="ipo")
    assert "--model.ipo_enable" not in flags_of(DPO)
    table = load_backends()
    trl = table.backends["trl.dpo"]
    assert isinstance(trl, StageBackend)
    assert "ipo_sum" in DPO.capabilities - trl.capabilities


def test_the_likelihood_is_a_mean_of_rows_whether_or_not_it_is_said() -> None:
    said = flags_of(DPO, nll_weight=0.1, nll_reduction="row")
    assert said == flags_of(DPO, nll_weight=0.1)
    _, view = lower(DPO, nll_weight=0.1, nll_reduction="row")
    assert view.refusals == []


def test_sharding_is_a_stage_of_zero() -> None:
    def stage(**settings: Json) -> list[str]:
        return flags_of(SFT, **settings)["--ds.zero_stage"]

    assert stage() == ["2"]
    assert stage(zero_stage=1) == ["1"]
    assert stage(sharding="optimizer") == ["2"]
    assert stage(sharding="full") == stage(sharding="full", zero_stage=3) == ["3"]
    assert "--ds.adam_offload" not in flags_of(DPO)
    assert flags_of(DPO, offload=True)["--ds.adam_offload"] == []
    assert flags_of(DPO, attention="eager")["--ds.attn_implementation"] == ["eager"]
    assert flags_of(DPO, attention="flash")["--ds.attn_implementation"] == ["flash_attention_2"]


def test_numbers_read_back_as_they_were() -> None:
    found = flags_of(SFT, lr=1.7e-5, weight_decay=1 / 3, adam_beta1=0.1)
    assert float(found["--adam.lr"][0]) == 1.7e-5
    assert float(found["--adam.weight_decay"][0]) == 1 / 3
    assert [float(word) for word in found["--adam.betas"]] == [0.1, 0.999]


def test_micro_batches_divide_what_a_process_takes() -> None:
    found = flags_of(SFT, processes=4, micro_batch=2)
    assert (found["--train.batch_size"], found["--train.micro_batch_size"]) == (["64"], ["2"])
    assert flags_of(SFT, processes=4)["--train.micro_batch_size"] == ["16"]
    for settings in ({"processes": 3}, {"processes": 4, "micro_batch": 5}):
        _, view = lower(SFT, **settings)
        (refusal,) = view.refusals
        assert "a divisor of" in str(refusal.fix)


REFUSALS: list[tuple[StageBackend, dict[str, Json], str, str | None]] = [
    (SFT, {"dtype": "float32"}, "dtype", "trl.sft"),
    (DPO, {"dtype": "float32"}, "dtype", "trl.dpo"),
    (SFT, {"packing": True}, "packing", None),
    (DPO, {"loss": "hinge"}, "loss", "trl.dpo"),
    (DPO, {"mean_log_prob": True}, "mean_log_prob", "trl.dpo"),
    (DPO, {"loss": "ipo", "label_smoothing": 0.1}, "label_smoothing", None),
    (DPO, {"nll_weight": 0.1, "nll_on": "whole"}, "nll_on", "trl.dpo"),
    (DPO, {"nll_weight": 0.1, "nll_reduction": "token"}, "nll_reduction", "trl.dpo"),
    (SFT, {"scheduler": "constant", "warmup_ratio": 0.1}, "warmup_ratio", None),
    (SFT, {"lora": {"alpha": 0.5}}, "lora.alpha", "trl.sft"),
    (SFT, {"lora": {"rank": 2}, "zero_stage": 3}, "zero_stage", None),
    (SFT, {"lora": {"rank": 2}, "sharding": "full"}, "sharding", None),
    (DPO, {"sharding": "full", "zero_stage": 2}, "zero_stage", None),
    (SFT, {"lora": {"targets": ["--use_ms"]}}, "lora.targets", None),
]


@pytest.mark.parametrize(("backend", "settings", "path", "able"), REFUSALS)
def test_what_openrlhf_cannot_do_is_refused_by_name(
    backend: StageBackend, settings: dict[str, Json], path: str, able: str | None
) -> None:
    _, view = lower(backend, **settings)
    (refusal,) = view.refusals
    assert refusal.path == path
    if able is not None:
        other = load_backends().backends[able]
        assert isinstance(other, StageBackend)
        assert refusal.capability in other.capabilities - backend.capabilities


@BOTH
def test_a_plan_from_before_there_was_save_dtype_is_read(backend: StageBackend) -> None:
    config = dict(lower(backend)[0].config)
    now = JobConfig(config).read_as(TrainerSettings)
    del config["save_dtype"]
    assert JobConfig(config).read_as(TrainerSettings) == now
