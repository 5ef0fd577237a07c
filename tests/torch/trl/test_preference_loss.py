"""The numbers of DPO, through the trainer, collator and log-probability function that jobs use.

Values (pc, pr, rc, rr): log-probabilities of the chosen and the rejected side under the policy
and under the reference. Expected losses are those of ETO's own loss function.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from datasets import Dataset
from tests.torch.trl.jobs import (
    pairs,
    run_here,
    trainer_job,
    trajectories,
    write_rows,
)
from trl import DPOConfig, DPOTrainer
from trl.trainer.utils import add_fused_lm_head

from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.trainers.trl.trainers import PairCollator, PairTrainer

Case = tuple[float, float, float, float]
EQUAL: Case = (-10, -12, -10, -12)
BETTER: Case = (-10, -12, -11, -11.5)
WORSE: Case = (-12, -10, -11, -11.5)


def batch_of(cases: list[Case]) -> tuple[Any, dict[str, torch.Tensor]]:
    """A stand-in for the policy that gives these log-probabilities to one-token continuations,
    and the batch that goes with it."""
    chosen = [case[0] for case in cases]
    rejected = [case[1] for case in cases]
    size = 2 * len(cases)

    def policy(**_: Any) -> SimpleNamespace:
        log_probs = torch.zeros(size, 2)
        log_probs[:, 1] = torch.tensor(chosen + rejected)
        still = torch.zeros(size, 2)
        return SimpleNamespace(
            log_probs=log_probs, entropy=still, mean_logits=still, is_top1=still.bool()
        )

    mask = torch.tensor([[0, 0, 1]] * size)
    return policy, {
        "input_ids": torch.ones(size, 3, dtype=torch.long),
        "attention_mask": torch.ones(size, 3, dtype=torch.long),
        "completion_mask": mask,
        "ref_chosen_logps": torch.tensor([case[2] for case in cases]),
        "ref_rejected_logps": torch.tensor([case[3] for case in cases]),
    }


@pytest.mark.parametrize(
    ("settings", "case", "loss"),
    [
        ({"beta": 0.1}, EQUAL, 0.693147),
        ({"beta": 0.5}, EQUAL, 0.693147),
        ({"beta": 0.1}, BETTER, 0.620957),
        ({"beta": 0.5}, BETTER, 0.386871),
        ({"beta": 0.1}, WORSE, 0.825939),
        ({"beta": 0.1, "loss": "hinge"}, BETTER, 0.85),
        ({"beta": 0.1, "loss": "ipo", "mean_log_prob": True}, BETTER, 12.25),
        ({"beta": 0.1, "label_smoothing": 0.1}, BETTER, 0.635957),
        ({"beta": 0.1, "mean_log_prob": True}, BETTER, 0.620957),
        # M5: an empty side would score 0 under both models; the formula then is one-sided.
        ({"beta": 0.1}, (-10, 0, -11, 0), 0.644397),
        # One chosen token at -10, so that the NLL term is 10.
        ({"beta": 0.1, "nll_weight": 0.2}, BETTER, 0.620957 + 0.2 * 10),
    ],
)
def test_loss(
    make_trainer: Callable[..., PairTrainer], settings: dict[str, Any], case: Case, loss: float
) -> None:
    policy, batch = batch_of([case])
    found = make_trainer(**settings).compute_loss(policy, batch)
    assert float(found) == pytest.approx(loss, abs=2e-6)


@pytest.mark.parametrize(
    ("beta", "case", "chosen", "rejected", "accuracy"),
    [
        (0.1, EQUAL, 0.0, 0.0, 0.0),  # strictly greater
        (0.1, BETTER, 0.1, -0.05, 1.0),
        (0.5, BETTER, 0.5, -0.25, 1.0),
        (0.1, WORSE, -0.1, 0.15, 0.0),
    ],
)
def test_rewards(
    make_trainer: Callable[..., PairTrainer],
    beta: float,
    case: Case,
    chosen: float,
    rejected: float,
    accuracy: float,
) -> None:
    trainer = make_trainer(beta=beta)
    trainer.model.train()
    policy, batch = batch_of([case])
    trainer.compute_loss(policy, batch)
    metrics = trainer._metrics["train"]
    assert metrics["rewards/chosen"][-1] == pytest.approx(chosen, abs=1e-6)
    assert metrics["rewards/rejected"][-1] == pytest.approx(rejected, abs=1e-6)
    assert metrics["rewards/accuracies"][-1] == accuracy


def test_a_batch_is_the_mean_over_its_pairs(make_trainer: Callable[..., PairTrainer]) -> None:
    policy, batch = batch_of([EQUAL, BETTER, WORSE])
    found = make_trainer(beta=0.1).compute_loss(policy, batch)
    assert float(found) == pytest.approx((0.693147 + 0.620957 + 0.825939) / 3, abs=2e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"nll_weight": 0.3},
        {"loss": "hinge"},
        {"loss": "ipo", "mean_log_prob": True},
        {"mean_log_prob": True},
        {"label_smoothing": 0.2, "nll_weight": 0.1},
    ],
)
def test_empty_pairs_count_for_nothing(
    make_trainer: Callable[..., PairTrainer], settings: dict[str, Any]
) -> None:
    """They fill up the last step of several processes."""
    trainer = make_trainer(**settings)
    policy, batch = batch_of([BETTER, WORSE])
    expected = float(trainer.compute_loss(policy, batch))
    policy, batch = batch_of([BETTER, WORSE, (0, 0, 0, 0)])
    batch["completion_mask"][2] = batch["completion_mask"][5] = 0
    assert float(trainer.compute_loss(policy, batch)) == pytest.approx(expected, abs=1e-6)
    policy, batch = batch_of([(0, 0, 0, 0)])
    batch["completion_mask"][:] = 0
    step = torch.tensor([2, 2])
    found = trainer.compute_loss(policy, batch, num_items_in_batch=step)
    assert float(found) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("logits", "labels", "expected"),
    [
        ([[0, 0, 0, 0]] * 6, [-100, -100, 1, 2, -100, 3], -4.158883),  # 3 ln(1/4)
        ([[0, 0, 0, 0]] * 3, [1, -100, -100], 0.0),  # the first token is never predicted
        (
            [[0, 1, 2, 3], [1, 0, 0, 0], [0, 0, 5, 0], [9, 9, 9, 9]],
            [0, 3, -100, 2],
            -0.460202,
        ),
    ],
)
def test_log_probability_of_a_side(
    make_trainer: Callable[..., PairTrainer],
    logits: list[list[float]],
    labels: list[int],
    expected: float,
) -> None:
    """The sum over unmasked next-token labels. The model's body is made to yield the logits, and
    its output layer to pass them through; everything after that is the code of a real job."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=4,
        hidden_size=4,
        intermediate_size=4,
        num_hidden_layers=1,
        num_attention_heads=1,
        tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config)
    model.lm_head.weight.data = torch.eye(4)
    hidden = torch.tensor([logits, logits], dtype=torch.float32)
    model.model.forward = lambda **_: SimpleNamespace(last_hidden_state=hidden)
    add_fused_lm_head(model)
    ids = torch.tensor([[max(label, 0) for label in labels]] * 2)
    mask = torch.tensor([[int(label >= 0) for label in labels]] * 2)
    batch = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "completion_mask": mask,
    }
    chosen, rejected = make_trainer().compute_ref_log_probs(model, batch)
    assert float(chosen) == pytest.approx(expected, abs=2e-6)
    assert float(rejected) == pytest.approx(expected, abs=2e-6)


def test_collator_puts_chosen_sides_first_and_pads_right() -> None:
    rows = [
        {
            "chosen_ids": [1, 5, 6],
            "chosen_mask": [0, 1, 1],
            "rejected_ids": [1, 7],
            "rejected_mask": [False, True],
        },
        {
            "chosen_ids": [1, 5],
            "chosen_mask": [0, 1],
            "rejected_ids": [1, 7, 8, 9],
            "rejected_mask": [0, 1, 0, 1],
        },
    ]
    batch = PairCollator(pad=0)(rows)
    assert batch["input_ids"].tolist() == [[1, 5, 6, 0], [1, 5, 0, 0], [1, 7, 0, 0], [1, 7, 8, 9]]
    assert batch["completion_mask"].tolist() == [
        [0, 1, 1, 0],
        [0, 1, 0, 0],
        [0, 1, 0, 0],
        [0, 1, 0, 1],
    ]
    assert batch["attention_mask"].tolist() == [
        [1, 1, 1, 0],
        [1, 1, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 1],
    ]
    assert "ref_chosen_logps" not in batch


def test_precomputed_reference_gives_the_losses_of_a_live_one(
    make_trainer: Callable[..., PairTrainer], model: Path, tmp_path: Path
) -> None:
    """In batches of like length beforehand, or with the policy's batch: the same numbers."""
    data = write_rows(tmp_path / "rows", "trajectories.jsonl", trajectories(16))
    run_here(trainer_job(tmp_path, "sft", {"model": [model], "data": [data]}, epochs=2))
    losses = []
    for live in (False, True):
        trainer = make_trainer(
            reference=load_model(tmp_path / "data"), live_reference=live, micro_batch=2
        )
        rows = trainer.train_dataset.to_list()
        with torch.no_grad():
            losses.append(
                [
                    float(
                        trainer.compute_loss(trainer.model, trainer.data_collator(rows[i : i + 2]))
                    )
                    for i in range(0, 6, 2)
                ]
            )
    assert losses[0] == pytest.approx(losses[1], abs=2e-6)
    assert any(abs(loss - 0.693147) > 1e-3 for loss in losses[0])


class TestAgainstStockTrl:
    """TRL's own tokenisation scores every token after the prompt."""

    @pytest.fixture(scope="class")
    def stock(self, model: Path, tmp_path_factory: pytest.TempPathFactory) -> DPOTrainer:
        args = DPOConfig(
            output_dir=str(tmp_path_factory.mktemp("stock")),
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            beta=0.1,
        )
        rows = [{k: row[k] for k in ("prompt", "chosen", "rejected")} for row in pairs(6)]
        return DPOTrainer(
            model=load_model(model),
            args=args,
            train_dataset=Dataset.from_list(rows),
            processing_class=load_encoder(model).tokenizer,
        )

    def scored(self, trainer: DPOTrainer) -> list[str]:
        texts = []
        for row in trainer.train_dataset.to_list():
            batch = trainer.data_collator([row])
            ids = batch["input_ids"][batch["completion_mask"].bool()]
            texts.append(trainer.processing_class.decode(ids))
        return texts

    def test_score_on_completion_scores_what_stock_trl_scores(
        self, make_trainer: Callable[..., PairTrainer], stock: DPOTrainer
    ) -> None:
        ours = make_trainer(score_on="completion")
        assert self.scored(ours) == self.scored(stock)
        a = ours.data_collator(ours.train_dataset.to_list())
        b = stock.data_collator(stock.train_dataset.to_list())
        assert a["input_ids"].tolist() == b["input_ids"].tolist()
        assert a["completion_mask"].tolist() == b["completion_mask"].tolist()

    def test_score_on_assistant_leaves_observations_out(
        self, make_trainer: Callable[..., PairTrainer], stock: DPOTrainer
    ) -> None:
        assert any("Got" in text for text in self.scored(stock))
        ours = self.scored(make_trainer())
        assert not any("Got" in text for text in ours)
        assert all("Action: get" in text and "Action: drop" in text for text in ours)
