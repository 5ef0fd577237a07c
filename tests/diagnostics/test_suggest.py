"""Suggestions: the nearest valid name for a slip, and none where nothing is near."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentc.diagnostics.suggest import did_you_mean, distance, suggestions
from agentc.kinds import KINDS

FIELDS = sorted({field.name for kind in KINDS for field in kind.fields})
words = st.text(alphabet="abcd", max_size=6)


def reference_distance(left: str, right: str) -> int:
    """Optimal string alignment by its recursive definition."""

    @cache
    def of(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        best = min(of(i - 1, j) + 1, of(i, j - 1) + 1)
        best = min(best, of(i - 1, j - 1) + (left[i - 1] != right[j - 1]))
        if i > 1 and j > 1 and left[i - 1] == right[j - 2] and left[i - 2] == right[j - 1]:
            best = min(best, of(i - 2, j - 2) + 1)
        return best

    return of(len(left), len(right))


@given(words, words, st.integers(0, 6))
def test_distance_agrees_with_its_definition(left: str, right: str, limit: int) -> None:
    assert distance(left, right, limit) == min(reference_distance(left, right), limit + 1)


@given(words, words)
def test_distance_is_symmetric(left: str, right: str) -> None:
    assert distance(left, right, 9) == distance(right, left, 9)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("max_lenght", "max_length"),
        ("Max-Length", "max_length"),
        ("epoch", "epochs"),
        ("learning_rate", "lr"),
        ("batch_size", "global_batch"),
        ("num_train_epochs", "epochs"),
        ("max_new_tokens", "decode"),
    ],
)
def test_what_was_meant(written: str, meant: str) -> None:
    allowed = FIELDS if written != "max_new_tokens" else ["decode", "generation", "max_tokens"]
    expected = meant if written != "max_new_tokens" else "max_tokens"
    assert suggestions(written, allowed)[0] == expected


def test_nothing_near_gives_no_suggestion() -> None:
    assert suggestions("zebra", FIELDS) == ()
    assert did_you_mean("zebra", FIELDS) is None
    assert did_you_mean("", FIELDS) is None
    assert did_you_mean("x", []) is None


def test_a_tie_names_both() -> None:
    assert did_you_mean("cat", ["bat", "hat", "dog"]) == "did you mean `bat` or `hat`?"


@given(st.text(max_size=30), st.lists(st.text(max_size=10), max_size=5))
def test_suggestions_are_allowed_names(written: str, allowed: list[str]) -> None:
    assert set(suggestions(written, allowed)) <= set(allowed)
