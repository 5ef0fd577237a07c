"""Canonical JSON: one text for one value, and no text for what has none; the text of files."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentc.plan.keys import canonical_text, plain_json
from agentc.plan.render import document_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)  # fmt: skip


@given(VALUES)
def test_text_of_a_file_reads_back_as_the_value_and_has_one_layout(value: Any) -> None:
    text = document_text(value)
    assert json.loads(text) == value
    # Where no float is, whose digits may be written in two ways:
    if not any(mark in text for mark in ".eE"):
        assert text == json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


@given(st.dictionaries(st.text(), VALUES))
def test_canonical_text_knows_no_order(value: dict[str, Any]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical_text(value) == canonical_text(turned)


@given(VALUES)
def test_canonical_text_reads_back_as_an_equal_value(value: Any) -> None:
    assert json.loads(canonical_text(value)) == value


def test_kinds_of_values_stay_apart() -> None:
    values = [1, True, "1", None, "null", [], {}, "", 0, False, 1.5]
    assert len({canonical_text(value) for value in values}) == len(values)


@pytest.mark.parametrize("value", [{1}, Path("x"), float("nan"), float("inf"), {1: 2}, b"x"])
def test_what_has_no_stable_form_is_refused(value: Any) -> None:
    for write in (canonical_text, plain_json):
        with pytest.raises(TypeError, match="no canonical form"):
            write({"inside": [value]})


def test_tuples_and_read_only_mappings_are_lists_and_mappings() -> None:
    value = MappingProxyType({"a": (1, MappingProxyType({"b": ()}))})
    assert plain_json(value) == {"a": [1, {"b": []}]}
