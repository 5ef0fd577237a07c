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
    lowered,
    pairs,
    run_here,
    small_model,
    trainer_job,
    trajectories,
    write_rows,
)
from trl import DPOConfig, DPOTrainer
from trl.trainer.utils import add_fused_lm_head

from agentc.runtime.program import read_rows
from agentc_backends.data.chat.rows import MaskRules, encode_pairs
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.trainers.common.order import StepSampler
from agentc_backends.trainers.trl.job_dpo import pair_columns
from agentc_backends.trainers.trl.likelihood import NllRules
from agentc_backends.trainers.trl.trainers import PairCollator, PairTrainer

Case = tuple[float, float, float, float]
EQUAL: Case = (-10, -12, -10, -12)
BETTER: Case = (-10, -12, -11, -11.5)
WORSE: Case = (-12, -10, -11, -11.5)


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
            nll=NllRules(**config.get("nll", {})),
            sampler=StepSampler([1] * len(rows), global_batch=8, multiple=1, seed=0),
        )

    return make


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


Rows = list[tuple[list[float], list[float]]]
"""Of each pair the log-probabilities of both sides' tokens, from the second of a row on."""
O1: Rows = [([-2, -2, -0.5, -1, -1.5], [-2, -2, -2.5, -1.5])]
"""Two tokens of the prompt, then the reply; the reference gives the replies -3.6 and -4."""
TWO: Rows = [([-3, -1, -1], [-3, -2]), ([-3, -2, -2, -2, -2], [-3, -1])]
"""One token of the prompt."""


def batch_of_rows(
    rows: Rows, prompt: int, reference: list[tuple[float, float]]
) -> tuple[Any, dict[str, torch.Tensor]]:
    """A stand-in for the policy that tells the log-probabilities of what it is asked for alone (as
    TRL's forward does), and the batch that goes with it: padded, the first token not predicted."""
    sides = [chosen for chosen, _ in rows] + [rejected for _, rejected in rows]
    length = 1 + max(map(len, sides))
    values = torch.zeros(len(sides), length - 1)
    attention = torch.zeros(len(sides), length, dtype=torch.long)
    mask = torch.zeros_like(attention)
    for row, side in enumerate(sides):
        values[row, : len(side)] = torch.tensor(side)
        attention[row, : 1 + len(side)] = 1
        mask[row, 1 + prompt : 1 + len(side)] = 1

    def policy(labels: torch.Tensor, **_: Any) -> SimpleNamespace:
        still = torch.zeros_like(values)
        return SimpleNamespace(
            log_probs=values * (labels[:, 1:] != -100),
            entropy=still,
            mean_logits=still,
            is_top1=still.bool(),
        )

    return policy, {
        "input_ids": torch.ones_like(attention),
        "attention_mask": attention,
        "completion_mask": mask,
        "ref_chosen_logps": torch.tensor([chosen for chosen, _ in reference]),
        "ref_rejected_logps": torch.tensor([rejected for _, rejected in reference]),
    }


@pytest.mark.parametrize(
    ("settings", "loss"),
    [
        ({"mean_log_prob": True}, 0.683197),
        ({"mean_log_prob": True, "nll_weight": 0.01}, 0.693197),
        ({}, 0.663597),
        ({"nll_weight": 0.01}, 0.673597),
        ({"nll_weight": 0.01, "nll_on": "whole"}, 0.677597),
        ({"nll_weight": 0.01, "nll_on": "whole", "nll_reduction": "row"}, 0.677597),
    ],
)
def test_o1_a_pair_of_the_fork(
    make_trainer: Callable[..., PairTrainer], settings: dict[str, Any], loss: float
) -> None:
    """Numbers that the fork of OpenRLHF gave (oracles O1, E4); where it has no mask its means are
    over the length of the row, which is no mean of what is scored, and is not had here."""
    policy, batch = batch_of_rows(O1, 2, [(-3.6, -4.0)])
    found = make_trainer(beta=0.1, **settings).compute_loss(policy, batch)
    assert float(found) == pytest.approx(loss, abs=2e-6)


@pytest.mark.parametrize(
    ("on", "reduction", "expected"),
    [
        ("chosen", "auto", 10 / 6),
        ("chosen", "token", 10 / 6),
        ("chosen", "row", 1.5),
        ("whole", "token", 16 / 8),
        ("whole", "row", (5 / 3 + 11 / 5) / 2),
    ],
)
def test_e4_means_over_tokens_and_over_rows(
    make_trainer: Callable[..., PairTrainer], on: str, reduction: str, expected: float
) -> None:
    """Rows of (-1, -1) and (-2, -2, -2, -2): 1.666667 by token, 1.5 by row; however the step is
    cut, and whatever empty pairs stand at its end."""
    trainer = make_trainer(beta=0.1, nll_weight=2.0, nll_on=on, nll_reduction=reduction)
    plain = make_trainer(beta=0.1)
    reference = [(-2.0, -2.0), (-8.0, -1.0)]
    policy, batch = batch_of_rows(TWO, 1, reference)
    preference = float(plain.compute_loss(policy, batch))
    found = float(trainer.compute_loss(policy, batch))
    assert found == pytest.approx(preference + 2 * expected, abs=2e-6)
    step = trainer._get_num_items_in_batch([batch], torch.device("cpu"))
    parts = 0.0
    for row, each in zip(TWO, reference, strict=True):
        policy, batch = batch_of_rows([row], 1, [each])
        parts += float(trainer.compute_loss(policy, batch, num_items_in_batch=step))
    assert parts == pytest.approx(found, abs=2e-6)
    policy, batch = batch_of_rows([*TWO, ([], [])], 1, [*reference, (0.0, 0.0)])
    assert float(trainer.compute_loss(policy, batch)) == pytest.approx(found, abs=2e-6)


@pytest.mark.parametrize("on", ["chosen", "whole"])
@pytest.mark.parametrize("reduction", ["token", "row"])
def test_the_likelihood_is_that_of_a_plain_forward_pass(
    make_trainer: Callable[..., PairTrainer], on: str, reduction: str
) -> None:
    """Loss and gradient of a real model, in micro-batches of 1, 2 and 6."""
    settings = {"beta": 0.1, "nll_weight": 0.5, "nll_on": on, "nll_reduction": reduction}
    trainer, plain = make_trainer(**settings), make_trainer(beta=0.1)
    rows = trainer.train_dataset.to_list()
    model = trainer.model
    terms, counts = [], []
    for row in rows:
        ids = torch.tensor([row["chosen_ids"]])
        logits = model(input_ids=ids).logits[0, :-1]
        log_probs = logits.log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        counted = torch.tensor(row["chosen_mask"][1:]) if on == "chosen" else slice(None)
        terms.append(-log_probs[counted].sum())
        counts.append(len(log_probs[counted]))
    if reduction == "token":
        nll = torch.stack(terms).sum() / sum(counts)
    else:
        nll = torch.stack([t / n for t, n in zip(terms, counts, strict=True)]).mean()
    whole = trainer.data_collator(rows)
    preference = plain.compute_loss(model, whole)
    expected = preference + 0.5 * nll
    (wanted,) = torch.autograd.grad(expected, [model.lm_head.weight])
    for size in (1, 2, 6):
        batches = [trainer.data_collator(rows[i : i + size]) for i in range(0, 6, size)]
        step = trainer._get_num_items_in_batch(batches, torch.device("cpu"))
        loss = sum(trainer.compute_loss(model, batch, num_items_in_batch=step) for batch in batches)
        assert float(loss.detach()) == pytest.approx(float(expected.detach()), abs=1e-5)
        (found,) = torch.autograd.grad(loss, [model.lm_head.weight])
        assert torch.allclose(found, wanted, atol=1e-6)


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
