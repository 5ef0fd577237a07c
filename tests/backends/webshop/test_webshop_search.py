"""Ranking as Lucene does it: stems, tokens, lengths in a byte, scores."""

from __future__ import annotations

from random import Random

import pytest

from agentc_backends.environments.webshop.search import SearchIndex, stem, stored_length, tokens


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # Examples of Porter's paper.
        ("caresses", "caress"), ("ponies", "poni"), ("cats", "cat"), ("agreed", "agre"),
        ("plastered", "plaster"), ("motoring", "motor"), ("sing", "sing"), ("hopping", "hop"),
        ("falling", "fall"), ("filing", "file"), ("happy", "happi"), ("sky", "sky"),
        ("relational", "relat"), ("conditional", "condit"), ("vietnamization", "vietnam"),
        ("triplicate", "triplic"), ("hopefulness", "hope"), ("adjustment", "adjust"),
        ("adoption", "adopt"), ("rate", "rate"), ("cease", "ceas"), ("controlling", "control"),
        ("generalizations", "gener"), ("oscillators", "oscil"),
        # Where Lucene follows Porter's later departures.
        ("possibly", "possibl"), ("ecology", "ecolog"), ("as", "as"),
    ],
)  # fmt: skip
def test_stems(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_tokens() -> None:
    assert tokens("The woman's 1/4-zip T-shirt, v2.0 at 3.5 oz.") == [
        "woman", "1", "4", "zip", "t", "shirt", "v2.0", "3.5", "oz",
    ]  # fmt: skip
    assert tokens("of the and") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # What Lucene 9.5 makes of words in product texts, by Anserini's command line.
        ("gusto® ❶package", ["gusto", "®", "packag"]),
        ("★Detailed ✔️oversized 💖size", ["★", "detail", "✔\ufe0f", "overs", "💖", "size"]),
        ("👨\u200d💼 ☀☀", ["👨\u200d💼", "☀", "☀"]),
        ("valentine‘s comfort：brings 1⁄2", ["valentine‘", "comfort：br", "1⁄2"]),
        ("_ snake_case ﾟ x", ["snake_cas", "x"]),
    ],
)
def test_words_as_lucene_cuts_them(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("length", "stored"),
    # Up to 39 as they are; then steps of 2 from 40, of 4 from 56, of 8 from 88.
    [(0, 0), (23, 23), (39, 39), (41, 40), (55, 54), (57, 56), (87, 84), (95, 88), (96, 96)],
)
def test_lengths_are_rounded_as_lucene_stores_them(length: int, stored: int) -> None:
    assert stored_length(length) == stored


def test_rare_words_and_short_texts_come_first() -> None:
    index = SearchIndex(
        ["red lamp for a desk with a long cable and a switch", "red lamp", "blue lamp", "red chair"]
    )
    assert index.search("red lamp", 10) == [1, 0, 2, 3]
    assert index.search("chairs", 10) == [3]
    assert index.search("lamp", 2) == [2, 1] or index.search("lamp", 2) == [1, 2]
    assert index.search("of the", 10) == []


def test_equal_scores_keep_the_order_of_the_catalogue() -> None:
    assert SearchIndex(["lamp a", "chair", "lamp", "lamps"]).search("lamp", 10) == [0, 2, 3]


def test_equal_scores_go_by_key_where_there_are_keys() -> None:
    assert SearchIndex(["lamp a", "lamp", "lamps"], ["C", "A", "B"]).search("lamp", 2) == [1, 2]


def test_ruling_out_texts_changes_no_result() -> None:
    """Of many texts, those that cannot come among the best are passed over unread."""
    random = Random(0)
    words = [f"w{number}" for number in range(400)]
    weights = [1 / (number + 1) for number in range(400)]
    # More than are read without a look at what is left.
    texts = [" ".join(random.choices(words, weights, k=12)) for _ in range(12_000)]
    index = SearchIndex(texts)
    for _ in range(5):
        query = " ".join(["w0", "w1", "w2", *random.choices(words, k=4)])
        assert index.search(query, 20) == index.search(query, len(texts))[:20]
