"""What lowering reads by a dataclass of settings: those that have an effect, and why others not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pytest

from agentc.backend_api.view import OptionView, StageView
from agentc.kinds.field import Json
from agentc.kinds.settings import fields_of
from agentc.program.settings import only_with, only_with_input, setting, unless, without_input


@dataclass(frozen=True, kw_only=True)
class Asking:
    parser: Literal["strict", "loose"] = setting("", "strict")
    unparsed: str = setting("", "bad", only_if=unless("parser", "loose", because="all is parsed"))
    words: int = setting("", 3)


@dataclass(frozen=True, kw_only=True)
class Making:
    parts: tuple[str, ...] = setting("", ("a", "b"))
    bar: float = setting("", 0.5, only_if=only_with("parts", "b", "c", because="no bar"))
    asking: Asking = setting("", Asking(), only_if=only_with("parts", "a", because="not asked"))
    cut: int = setting("", 1, only_if=only_with_input("prefixes", because="nothing is cut"))
    start: int = setting("", 0, only_if=without_input("prefixes", because="it is given"))
    more: Asking | None = setting("", None)
    at_once: int = setting("", 4, identity="placement")


def view_of(values: Mapping[str, Json], **inputs: tuple[str, ...]) -> StageView:
    return StageView(table=fields_of(Making), values=values, inputs=inputs)


def test_all_settings_that_have_an_effect() -> None:
    view = view_of({"bar": 1})
    assert view.config_of(Making, placement=False) == {
        "parts": ["a", "b"],
        "bar": 1.0,
        "asking": {"parser": "strict", "unparsed": "bad", "words": 3},
        "start": 0,
        "more": None,
    }
    assert view.reasons == {"cut": "nothing is cut"}
    assert "at_once" not in view.read
    assert view.config_of(Making, placement=True) == {"at_once": 4}


@pytest.mark.parametrize(
    ("values", "reasons", "read"),
    [
        (
            {"parts": ["c"]},
            dict.fromkeys(["asking.parser", "asking.unparsed", "asking.words"], "not asked"),
            {"parts", "bar"},
        ),
        ({"parts": ["a"]}, {"bar": "no bar"}, {"parts", "asking.unparsed"}),
        (
            {"asking": {"parser": "loose", "unparsed": "good"}},
            {"asking.unparsed": "all is parsed"},
            {"asking.parser", "asking.words"},
        ),
    ],
)
def test_reasons_are_those_of_single_settings(
    values: Mapping[str, Json], reasons: Mapping[str, str], read: set[str]
) -> None:
    view = view_of(values, prefixes=("somewhere",))
    view.config_of(Making)
    assert view.reasons == {**reasons, "start": "it is given"}
    assert read <= view.read
    assert not set(reasons) & view.read


def test_what_the_caller_leaves_out() -> None:
    view = view_of({})
    config = view.config_of(Making, without={"asking.words": "none said", "bar": "no need"})
    assert config["asking"] == {"parser": "strict", "unparsed": "bad"}
    assert view.reasons == {
        "asking.words": "none said", "bar": "no need", "cut": "nothing is cut"
    }  # fmt: skip


def test_a_setting_without_effect_decides_nothing() -> None:
    """It is not read, and what depends on it has an effect."""
    view = view_of({"asking": {"parser": "loose"}})
    config = view.config_of(Making, without={"asking.parser": "texts have a form"})
    assert config["asking"] == {"unparsed": "bad", "words": 3}
    assert "asking.parser" not in view.read


def test_a_group_that_may_be_null_is_read_without_its_settings() -> None:
    view = view_of({"more": {"parser": "loose", "unparsed": "good"}})
    assert view.config_of(Making)["more"] == {"parser": "loose", "words": 3}
    assert view.reasons["more.unparsed"] == "all is parsed"
    assert "more.unparsed" not in view.read
    assert view.identity()["more"] is True


def test_a_reason_names_the_value_that_it_is_about() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Oracle:
        kind: Literal["table", "server"] = setting("", "table")
        url: str | None = setting(
            "", None, only_if=only_with("kind", "server", because="`kind: {value}` calls none")
        )

    view = OptionView(table=fields_of(Oracle), values={"url": "http://here"})
    assert view.config_of(Oracle) == {"kind": "table"}
    assert view.reasons == {"url": "`kind: table` calls none"}


def test_names_that_no_setting_has() -> None:
    with pytest.raises(AssertionError, match="Making: wrong"):
        view_of({}).config_of(Making, without={"wrong": "it is"})
