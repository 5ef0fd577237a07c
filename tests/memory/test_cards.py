"""GPUs by name, and what a spec may write instead."""

from __future__ import annotations

import pytest

from agentc.cost import GPUS
from agentc.cost.parameters import PUBLISHED
from agentc.memory import CARDS, PUBLISHED_SHAPES, architecture_named, card_bytes
from agentc.memory.cards import card_label, card_type


@pytest.mark.parametrize(
    ("written", "gigabytes"),
    [("a100-80gb", 80), ("A100-40GB", 40), ("h100_80gb", 80), ("t4", 15), ("h200", 141),
     ("80", 80), (80, 80), ("24.5", 24.5), ("80gb", 80), ("80 GB", 80)],
)  # fmt: skip
def test_a_card_or_a_number(written: object, gigabytes: float) -> None:
    assert card_bytes(written) == gigabytes * 1e9


@pytest.mark.parametrize("written", ["a100", "v100", "a100-81gb", "", "0", "-3", True, None])
def test_what_says_nothing(written: object) -> None:
    """Of a type that comes in two sizes, the type alone says too little."""
    assert card_bytes(written) is None


def test_labels() -> None:
    assert card_label("T4") == "t4-16gb"
    assert card_label("80") == "a GPU of 80 GB"


def test_cards_hold_no_more_than_their_names_say() -> None:
    for name, held in CARDS.items():
        assert 0.9 * float(name.split("-")[1].removesuffix("gb")) <= held
        assert held <= float(name.split("-")[1].removesuffix("gb"))


def test_the_cost_model_knows_their_types() -> None:
    shared = {card_type(name) for name in CARDS} & set(GPUS)
    assert shared == set(GPUS)


def test_both_tables_of_models_agree() -> None:
    for name in PUBLISHED_SHAPES.keys() & PUBLISHED.keys():
        assert PUBLISHED_SHAPES[name].parameters == pytest.approx(PUBLISHED[name], rel=5e-4), name


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-instruct-v0.3"),
        ("./models/Qwen2.5-7B/", "qwen2.5-7b"),
        ("acme/Llama-2-7bis", None),
        ("acme/llama-2-70", None),
        ("mistralai/Mistral-7B-v0.4", None),
    ],
)
def test_a_repository_s_shape(name: str, known: str | None) -> None:
    assert architecture_named(name) == (None if known is None else PUBLISHED_SHAPES[known])
