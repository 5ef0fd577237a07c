"""The numbers of a critic: the order's worked examples through the trainers that jobs use, and a
two-layer model against sums made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from datasets import Dataset
from tests.torch.trl.jobs import hidden_texts, lowered, pairs, small_model, write_rows
from transformers import TrainingArguments
from trl import DPOConfig

from agentc_backends.data.chat.formats import RowsError
from agentc_backends.data.chat.hidden_texts import HiddenTexts
from agentc_backends.data.chat.rows import MaskRules, Side, encode_pairs, score_weights
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.data.models.value_head import HEAD, new_head, pool_states
from agentc_backends.trainers.common.rows import StepSampler
from agentc_backends.trainers.trl.critic_trainers import (
    CriticCollator,
    CriticTrainer,
    ValueCollator,
    ValueTrainer,
)
from agentc_backends.trainers.trl.job_critic import weighted_columns
from agentc_backends.trainers.trl.trainers import NllRules

Make = Callable[..., CriticTrainer]
CHOSEN, REJECTED = [[0.2, 0.4], [0.6]], [[-0.1, 0.3, 0.1], [-0.4, -0.2]]
"""Log-ratios of the tokens of each turn."""
LOG_PROBS = [-0.5, -1.0, -1.5]
"""Of the chosen side's tokens under the critic."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def make_trainer(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """A CriticTrainer as job_critic builds it, with settings that went through the lowering."""
    root = tmp_path_factory.mktemp("trainer")
    made = 0

    def make(micro_batch: int | None = None, **settings: Any) -> CriticTrainer:
        nonlocal made
        made += 1
        config, _ = lowered("critic", micro_batch=micro_batch, **settings)
        encoder = load_encoder(model)
        encoded, _counts = encode_pairs(encoder, pairs(8), MaskRules(**config["mask"]), turns=True)
        how = config["critic"]["normalisation"]
        return CriticTrainer(
            model=load_model(model),
            ref_model=None,
            reference_cache=root / f"reference_{made}.json",
            nll_weight=config["nll_weight"],
            nll=NllRules(reduction=config.get("nll_reduction", "token")),
            args=DPOConfig(output_dir=str(root / "out"), use_cpu=True, **config["arguments"]),
            train_dataset=Dataset.from_dict(weighted_columns(encoded, 0, encoder.pad, how)),
            processing_class=encoder.tokenizer,
            data_collator=CriticCollator(encoder.pad),
            sampler=StepSampler([1] * len(encoded), global_batch=8, multiple=1, seed=0),
        )

    return make


def side_of(turns: list[list[float]]) -> Side:
    """A row with these turns, an observation between them: one token for each number."""
    numbers = [-1]
    for turn, ratios in enumerate(turns):
        numbers += [turn] * len(ratios) + [-1]
    return Side([1] * len(numbers), [each >= 0 for each in numbers], numbers)


def example(normalisation: Any) -> tuple[Any, dict[str, torch.Tensor], list[torch.Tensor]]:
    """The pair of the order: a stand-in for the critic, the batch, and the log-probabilities that
    the stand-in gives to each side's scored tokens."""
    sides = [side_of(CHOSEN), side_of(REJECTED)]
    own = [torch.tensor(LOG_PROBS), torch.full((5,), -1.0)]
    ratios = [torch.tensor([r for turn in turns for r in turn]) for turns in (CHOSEN, REJECTED)]
    leaves = [each.clone().requires_grad_() for each in own]
    weights = [score_weights(side, normalisation) for side in sides]
    length = max(len(side.ids) for side in sides)
    columns = {
        f"{name}_{what}": value
        for name, side, weight in zip(("chosen", "rejected"), sides, weights, strict=True)
        for what, value in (("ids", side.ids), ("mask", side.trained), ("weights", weight))
    }
    for name, log_probs, ratio, weight in zip(
        ("chosen", "rejected"), own, ratios, weights, strict=True
    ):
        scored = torch.tensor([each for each in weight if each])
        columns[f"ref_{name}_logps"] = float(((log_probs - ratio) * scored).sum())
    batch = CriticCollator(0)([columns])

    def critic(**_: Any) -> SimpleNamespace:
        found = torch.zeros(2, length - 1)
        for row, (side, leaf) in enumerate(zip(sides, leaves, strict=True)):
            places = [place - 1 for place, trained in enumerate(side.trained) if trained]
            found = found.index_put((torch.tensor([row] * len(places)), torch.tensor(places)), leaf)
        return SimpleNamespace(log_probs=found)

    return critic, batch, leaves


@pytest.mark.parametrize(
    ("normalisation", "beta", "nll_weight", "loss"),
    [
        ("turn", 0.1, 0.0, 0.639659),
        ("turn", 1.0, 0.0, 0.287335),
        ("trajectory", 0.1, 0.0, 0.670412),
        ("trajectory", 1.0, 0.0, 0.489367),
        ("none", 0.1, 0.0, 0.620957),
        ("none", 1.0, 0.0, 0.201413),
        ("turn", 0.1, 0.01, 0.649659),
        ("trajectory", 0.1, 0.01, 0.680412),
    ],
)
def test_loss_of_the_worked_example(
    make_trainer: Make, normalisation: str, beta: float, nll_weight: float, loss: float
) -> None:
    critic, batch, _ = example(normalisation)
    trainer = make_trainer(normalisation=normalisation, beta=beta, nll_weight=nll_weight)
    assert float(trainer.compute_loss(critic, batch)) == pytest.approx(loss, abs=1e-6)


@pytest.mark.parametrize(
    ("normalisation", "chosen", "rejected"),
    [
        (
            "turn",
            [-0.0236264, -0.0236264, -0.0472528],
            [0.0157509] * 3 + [0.0236264] * 2,
        ),
        ("trajectory", [-0.0162834] * 3, [0.00977004] * 5),
    ],
)
def test_gradients_of_the_worked_example(
    make_trainer: Make, normalisation: str, chosen: list[float], rejected: list[float]
) -> None:
    critic, batch, leaves = example(normalisation)
    make_trainer(normalisation=normalisation).compute_loss(critic, batch).backward()
    for leaf, expected in zip(leaves, (chosen, rejected), strict=True):
        assert leaf.grad is not None
        assert leaf.grad.tolist() == pytest.approx(expected, rel=2e-5)


def by_hand(model: Any, reference: Any, rows: list[Any], settings: dict[str, Any]) -> Any:
    """The loss of pairs (chosen, rejected) by plain logits, one row after another."""

    def log_probs(which: Any, side: Side) -> list[tuple[int, Any]]:
        logits = which(input_ids=torch.tensor([side.ids])).logits[0, :-1].log_softmax(-1)
        return [
            (side.turns[place], logits[place - 1, side.ids[place]])
            for place in range(1, len(side.ids))
            if side.trained[place]
        ]

    def score(side: Side) -> Any:
        with torch.no_grad():
            against = log_probs(reference, side)
        turns: dict[int, list[Any]] = {}
        for (turn, own), (_, other) in zip(log_probs(model, side), against, strict=True):
            turns.setdefault(turn, []).append(own - other)
        everything = [each for turn in turns.values() for each in turn]
        if settings["normalisation"] == "turn":
            return sum(sum(turn) / len(turn) for turn in turns.values())
        total = sum(everything)
        return total / len(everything) if settings["normalisation"] == "trajectory" else total

    losses = [
        -torch.nn.functional.logsigmoid(0.1 * (score(one) - score(other))) for one, other in rows
    ]
    said = [[value for _, value in log_probs(model, one)] for one, _ in rows]
    likelihood = sum(map(sum, said)) / sum(map(len, said))
    if settings.get("nll_reduction") == "row":
        likelihood = sum(sum(row) / len(row) for row in said) / len(said)
    return sum(losses) / len(losses) - settings["nll_weight"] * likelihood


@pytest.mark.parametrize(
    ("normalisation", "reduction"),
    [("turn", "token"), ("trajectory", "token"), ("none", "token"), ("trajectory", "row")],
)
def test_a_model_of_two_layers_against_sums_by_hand(
    make_trainer: Make, model: Path, normalisation: str, reduction: str
) -> None:
    """Loss and gradients of a step, at weights that have left the reference; the same for
    micro-batches of 1, 2, 4 and 8."""
    settings = {"normalisation": normalisation, "nll_weight": 0.2, "nll_reduction": reduction}
    rules = MaskRules(loss_on="assistant", max_length=256, truncation="error")
    encoded, _ = encode_pairs(load_encoder(model), pairs(8), rules, turns=True)
    reference, moved = load_model(model), load_model(model)
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in moved.parameters():
            weight += 0.05 * torch.randn_like(weight)
    wanted = by_hand(moved, reference, encoded, settings)
    wanted.backward()
    gradients = {name: each.grad for name, each in moved.named_parameters()}
    for micro in (1, 2, 4, 8):
        trainer = make_trainer(micro, **settings)
        trainer.model.load_state_dict(moved.state_dict())
        rows = trainer.train_dataset.to_list()
        batches = [
            trainer.data_collator(rows[start : start + micro]) for start in range(0, 8, micro)
        ]
        counts = trainer._get_num_items_in_batch(batches, torch.device("cpu"))
        losses = [
            trainer.compute_loss(trainer.model, batch, num_items_in_batch=counts)
            for batch in batches
        ]
        total = sum(losses)
        assert float(total) == pytest.approx(float(wanted), abs=1e-5)
        total.backward()
        for name, each in trainer.model.named_parameters():
            assert torch.allclose(each.grad, gradients[name], atol=1e-5), name


def test_empty_pairs_count_for_nothing(make_trainer: Make) -> None:
    critic, batch, _ = example("turn")
    trainer = make_trainer(nll_weight=0.01)
    expected = float(trainer.compute_loss(critic, batch))
    rows = trainer.train_dataset.to_list()
    empty = {name: [0] for name in rows[0]} | {"ref_chosen_logps": 0.0, "ref_rejected_logps": 0.0}
    both = CriticCollator(0)([rows[0], empty])
    alone = CriticCollator(0)([rows[0]])
    one, other = (float(trainer.compute_loss(trainer.model, each)) for each in (alone, both))
    assert one == pytest.approx(other, abs=1e-6)
    assert expected == pytest.approx(0.649659, abs=1e-6)


class TestValueHead:
    """Oracle E5, and where the states come from."""

    @pytest.fixture(scope="class")
    def make(self, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
        root = tmp_path_factory.mktemp("value")

        def trainer(**settings: Any) -> ValueTrainer:
            config, _ = lowered("critic", parameterisation="value_head", **settings)
            made, loaded = config["critic"], load_model(model)
            setattr(loaded, HEAD, new_head(loaded.config.hidden_size, 0))
            arguments = TrainingArguments(
                output_dir=str(root), use_cpu=True, remove_unused_columns=False,
                **config["arguments"],
            )  # fmt: skip
            return ValueTrainer(
                model=loaded, args=arguments, beta=made["beta"], objective=made["objective"],
                pooling=made["pooling"], data_collator=ValueCollator(0),
                train_dataset=Dataset.from_dict({"ids": [[[1]]], "targets": [[0.0]]}),
                sampler=StepSampler([1], global_batch=1, multiple=1, seed=0),
            )  # fmt: skip

        return trainer

    def said(self, trainer: Any, scores: list[float], targets: list[float], items: int) -> float:
        """The loss where the head gives these scores."""
        trainer._scores = lambda model, inputs: torch.tensor(scores)
        inputs = {"targets": torch.tensor(targets), "real": torch.tensor([True] * items)}
        return float(trainer.compute_loss(trainer.model, inputs))

    def test_regression_head(self, make: Callable[..., Any]) -> None:
        loss = self.said(make(beta=0.1), [1.3, 0.8], [1.0, 0.0], 1)
        assert loss == pytest.approx(0.668460, abs=1e-6)

    @pytest.mark.parametrize(
        ("target", "loss"), [(1.0, 0.513015), (0.0, 0.913015), (0.7, 0.633015)]
    )
    def test_binary_cross_entropy(
        self, make: Callable[..., Any], target: float, loss: float
    ) -> None:
        trainer = make(objective="binary_cross_entropy")
        assert self.said(trainer, [0.4], [target], 1) == pytest.approx(loss, abs=1e-6)

    @pytest.mark.parametrize("pooling", ["mean", "last"])
    def test_scores_are_of_last_hidden_states(self, make: Callable[..., Any], pooling: str) -> None:
        """Whatever stands beside a row in its batch."""
        trainer = make(pooling=pooling)
        trainer.model.eval()
        rows = [[1, 5, 6, 7], [1, 8]]
        batch = ValueCollator(0)([{"ids": [row], "targets": [0.0], "real": True} for row in rows])
        with torch.no_grad():
            found = trainer._scores(trainer.model, batch)
            for score, row in zip(found, rows, strict=True):
                states = trainer.model.model(input_ids=torch.tensor([row])).last_hidden_state[0]
                state = states.mean(dim=0) if pooling == "mean" else states[-1]
                assert float(score) == pytest.approx(
                    float(trainer.model.value_head(state)), abs=1e-6
                )

    def test_pooling_by_hand(self) -> None:
        hidden = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [9.0, 9.0]]])
        mask = torch.tensor([[1, 1, 0]])
        assert pool_states(hidden, mask, "mean").tolist() == [[2.0, 4.0]]
        assert pool_states(hidden, mask, "last").tolist() == [[3.0, 6.0]]


def test_hidden_text_stands_before_the_first_messages_text(model: Path, tmp_path: Path) -> None:
    """In the same message, so that every chat template writes it, and never scored."""
    folder = write_rows(tmp_path / "hidden", "privileged.jsonl", hidden_texts(3))
    hidden = HiddenTexts([folder], "In light that the final answer is: {privileged}.")
    row = pairs(3)[1]
    told = hidden.prepend("t1", row["prompt"])
    assert told[0]["content"] == (
        f"In light that the final answer is: get oak planks.\n\n{row['prompt'][0]['content']}"
    )
    assert told[1:] == row["prompt"][1:]
    encoder = load_encoder(model)
    rules = MaskRules(loss_on="assistant", max_length=256, truncation="error")
    [plain], _ = encode_pairs(encoder, [row], rules, turns=True)
    [with_text], _ = encode_pairs(encoder, [{**row, "prompt": told}], rules, turns=True)
    for one, other in zip(plain, with_text, strict=True):
        assert len(other.ids) > len(one.ids)
        scored = [[i for i, t in zip(s.ids, s.trained, strict=True) if t] for s in (one, other)]
        assert scored[0] == scored[1]


def test_hidden_text_can_stand_before_the_first_token(model: Path, tmp_path: Path) -> None:
    """As in the released rows: the filled template, and the conversation as it would be alone."""
    folder = write_rows(tmp_path / "hidden", "privileged.jsonl", hidden_texts(3))
    hidden = HiddenTexts([folder], "In light that the final answer is: {privileged}.")
    row = pairs(3)[1]
    messages, opening = hidden.place("before_begin_of_text", "t1", row["prompt"])
    assert messages == row["prompt"]
    assert opening == "In light that the final answer is: get oak planks."
    assert hidden.place("first_message", "t1", row["prompt"]) == (
        hidden.prepend("t1", row["prompt"]), "",
    )  # fmt: skip
    encoder = load_encoder(model)
    prefix = encoder.tokenizer(opening, add_special_tokens=False)["input_ids"]
    for loss_on in ("assistant", "completion"):
        rules = MaskRules(loss_on=loss_on, max_length=256, truncation="error")
        [plain], _ = encode_pairs(encoder, [row], rules, turns=True)
        [behind], counts = encode_pairs(encoder, [{**row, "opening": opening}], rules, turns=True)
        for one, other in zip(plain, behind, strict=True):
            assert other.ids == [*prefix, *one.ids]
            assert other.trained == [*[False] * len(prefix), *one.trained]
            assert other.turns == [*[-1] * len(prefix), *one.turns]
        assert counts.longest == max(len(side.ids) for side in behind)
    cut = MaskRules(loss_on="assistant", max_length=len(behind[0].ids) - 1, truncation="right")
    [short], _ = encode_pairs(encoder, [{**row, "opening": opening}], cut)
    assert short[0].ids == behind[0].ids[:-1]


def test_an_agent_that_was_told_is_found_without_a_word_of_it(tmp_path: Path) -> None:
    text = "Seven for each one of up to twelve, and four for each one of more than twelve of them."
    rows = [{"task_id": "a", "text": text}]
    hidden = HiddenTexts([write_rows(tmp_path / "h", "privileged.jsonl", rows)], "{privileged}")
    hidden.require_unseen("a", [{"role": "user", "content": "Write it: " + text[:63]}])
    with pytest.raises(RowsError, match="holds 64 characters of its hidden text") as told:
        hidden.require_unseen("a", [{"role": "user", "content": "Write it: " + text[5:69]}])
    assert "twelve" not in str(told.value)
    with pytest.raises(RowsError, match="no hidden text of the task b"):
        hidden.prepend("b", [{"role": "user", "content": "x"}])
