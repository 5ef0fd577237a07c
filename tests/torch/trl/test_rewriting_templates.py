"""Preference training under a chat template that rewrites history: a side with several turns is a
row for each, and its score the sum of theirs, as if each row were alone in the batch."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.support.by_hand import STILL, scores
from tests.torch.chat.test_templates import OWN
from tests.torch.trl.jobs import (
    pairs,
    run_here,
    small_model,
    steps,
    trainer_job,
    write_rows,
)

from agentc_backends.data.chat.rows import MaskRules, encode_pairs
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.models.checkpoint import load_model, write_chat_file


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = small_model(tmp_path_factory.mktemp("model"))
    template = OWN["thought_in_the_last"]
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    write_chat_file(folder, "tokenizer")
    return folder


@pytest.mark.parametrize("kind", ["dpo", "critic"])
def test_a_side_scores_the_sum_of_its_rows(kind: str, model: Path, tmp_path: Path) -> None:
    rows = pairs(6)
    data = write_rows(tmp_path / "rows", "pairs.jsonl", rows)
    job = trainer_job(
        tmp_path,
        kind,
        {"model": [model], "data": [data]},
        lr=STILL,
        global_batch=6,
        epochs=1,
        placement={"micro_batch": 3},
        **({"normalisation": "none"} if kind == "critic" else {}),
    )
    run_here(job)
    rules = MaskRules(loss_on="assistant", max_length=256, truncation="error")
    sides, _ = encode_pairs(load_encoder(model), rows, rules)
    assert max(len(side.rows()) for pair in sides for side in pair) == 4
    policy = load_model(model)
    line = steps(tmp_path)[0]
    for place, name in enumerate(("chosen", "rejected")):
        alone = [sum(scores(policy, row).log_prob for row in pair[place].rows()) for pair in sides]
        assert line[f"logps/{name}"] == pytest.approx(sum(alone) / len(alone), abs=2e-3)
