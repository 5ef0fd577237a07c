"""The arguments that lowering emits are accepted, and kept, by TRL's own configurations."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.torch.trl.jobs import REPOSITORY, lowered
from transformers import HfArgumentParser
from trl import DPOConfig, SFTConfig

CASES: list[tuple[str, type, dict[str, Any]]] = [
    ("sft", SFTConfig, {}),
    ("sft", SFTConfig, {"scheduler": "cosine", "warmup_ratio": 0.03, "max_steps": 7}),
    ("sft", SFTConfig, {"save_every": 4, "gradient_checkpointing": True, "dtype": "bfloat16"}),
    ("dpo", DPOConfig, {}),
    ("dpo", DPOConfig, {"nll_weight": 0.2, "label_smoothing": 0.1}),
    ("dpo", DPOConfig, {"loss": "ipo", "mean_log_prob": True, "micro_batch": 2}),
]


@pytest.mark.parametrize(("kind", "config", "settings"), CASES)
def test_the_library_takes_the_arguments(
    kind: str, config: type, settings: dict[str, Any], tmp_path: Path
) -> None:
    emitted = lowered(kind, **settings)[0]["arguments"]
    (parsed,) = HfArgumentParser(config).parse_dict(
        {**emitted, "output_dir": str(tmp_path), "use_cpu": True}
    )
    for name, value in emitted.items():
        if name in ("report_to", "save_strategy", "lr_scheduler_type", "gradient_checkpointing"):
            continue  # parsed into richer types
        assert getattr(parsed, name) == value, name
    assert parsed.save_strategy.value == emitted["save_strategy"]
    assert parsed.lr_scheduler_type == emitted["lr_scheduler_type"]
    assert parsed.report_to == []


@pytest.mark.parametrize("config", [SFTConfig, DPOConfig], ids=lambda config: config.__name__)
def test_the_list_of_fields_is_the_library_s(config: type) -> None:
    path = REPOSITORY / "tests" / "backends" / "trl" / "fields_1.16.0.json"
    listed = json.loads(path.read_text())[config.__name__]
    assert listed == sorted(field.name for field in dataclasses.fields(config))
