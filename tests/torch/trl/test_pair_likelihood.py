"""The likelihood term of DPO (`nll_weight`): over which tokens, by which mean, with its gradient.
Its preference term: `test_preference_loss.py`."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from agentc_backends.trainers.trl.trainers import PairTrainer

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
