"""Models whose tokenizer has no token to pad with, as Llama-2's and Llama-3.1's have none."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.torch.trl.jobs import (
    difference,
    facts,
    pairs,
    run_here,
    small_model,
    trainer_job,
    trajectories,
    without_pad_token,
    write_rows,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = small_model(
        tmp_path_factory.mktemp("model"), chat_format="llama-2", architecture="llama", context=512
    )
    return without_pad_token(made, tmp_path_factory.mktemp("copy") / "model")


@pytest.mark.parametrize("kind", ["sft", "dpo"])
def test_what_is_padded_changes_nothing(model: Path, tmp_path: Path, kind: str) -> None:
    """11 rows, 4 a step: with micro-batches of 4 rows are padded and an empty one fills the last
    step; with one row each there is no padding at all."""
    rows = write_rows(
        tmp_path / "rows",
        *{
            "sft": ("trajectories.jsonl", trajectories(11)),
            "dpo": ("pairs.jsonl", pairs(11)),
        }[kind],
    )
    for name, micro_batch in (("padded", 4), ("single", 1)):
        job = trainer_job(
            tmp_path / name,
            kind,
            {"model": [model], "data": [rows]},
            global_batch=4,
            micro_batch=micro_batch,
            max_length=512,
        )
        run_here(job)
        assert facts(tmp_path / name)["rows"] == 11
    assert difference(tmp_path / "padded", tmp_path / "single") < 2e-4
