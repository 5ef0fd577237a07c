"""A small model, and a trainer of preferences as its job builds one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from datasets import Dataset
from tests.torch.trl.jobs import lowered, pairs, small_model, write_rows
from trl import DPOConfig

from agentc.program.job import read_rows
from agentc_backends.data.chat.rows import MaskRules, encode_pairs
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.trainers.common.rows import StepSampler
from agentc_backends.trainers.trl.job_dpo import pair_columns
from agentc_backends.trainers.trl.trainers import NllRules, PairCollator, PairTrainer


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def make_trainer(
    model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., PairTrainer]:
    """A PairTrainer as job_dpo builds it, with settings that went through the lowering."""
    root = tmp_path_factory.mktemp("trainer")
    rows = read_rows(write_rows(root / "rows", "pairs.jsonl", pairs(6)) / "pairs.jsonl")
    made = 0

    def make(reference: Any = None, live_reference: bool = False, **settings: Any) -> PairTrainer:
        nonlocal made
        made += 1
        config, _ = lowered("dpo", **settings)
        encoder = load_encoder(model)
        encoded, _counts = encode_pairs(encoder, rows, MaskRules(**config["mask"]))
        pad = encoder.tokenizer.pad_token_id
        arguments = dict(config["arguments"])
        if live_reference:
            arguments["precompute_ref_log_probs"] = False
        return PairTrainer(
            model=load_model(model),
            ref_model=reference,
            reference_cache=root / f"reference_{made}.json",
            args=DPOConfig(output_dir=str(root / "out"), use_cpu=True, **arguments),
            train_dataset=Dataset.from_dict(pair_columns(encoded, 0, pad)),
            processing_class=encoder.tokenizer,
            data_collator=PairCollator(pad),
            nll=NllRules(**config["nll"] or {}),
            sampler=StepSampler([1] * len(rows), global_batch=8, multiple=1, seed=0),
        )

    return make
