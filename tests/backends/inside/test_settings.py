"""Settings of environments: what a declaration writes, the program reads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from agentc.backend_api import EnvironmentBackend, OptionView
from agentc.program.job import check_planned
from agentc.program.settings import setting, settings_from
from agentc_backends.environments.alfworld.backend import BACKEND as ALFWORLD
from agentc_backends.environments.guessing_games.backend import GUESS_MY_CITY, TWENTY_QUESTIONS
from agentc_backends.environments.server.program import opener_of, read_arguments
from agentc_backends.environments.server.settings import data_of
from agentc_backends.environments.textcraft.backend import BACKEND as TEXTCRAFT
from agentc_backends.environments.webshop.backend import BACKEND as WEBSHOP


@dataclass(frozen=True, kw_only=True)
class Every:
    """One setting of each type."""

    count: int = setting("A count.", 3)
    most: int | None = setting("A limit.", None)
    least: int | None = setting("Another.", 1)
    share: float = setting("A share.", 0.5)
    quick: bool = setting("Off unless said.", False)
    whole: bool = setting("On unless said.", True)
    word: Literal["a", "b"] = setting("A word.", "a")
    names: tuple[str, ...] = setting("Names.", ("x",))
    table: dict[str, Any] = setting("A mapping.", {"one": 1})
    folder: Path | None = setting("A folder.", None)
    apart: int = setting("The declaration's alone.", 0, served=False)


@dataclass(frozen=True, kw_only=True)
class Required:
    """One that has no default."""

    times: int = setting("How often.")


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """Settings with limits."""

    games: int = setting("Games.", 3, minimum=1, maximum=9)
    pause_s: float = setting("A pause.", 1.0, above=0)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"count": 0, "most": 0, "share": 0.0, "quick": True, "whole": False, "word": "b"},
        {"least": None, "names": (), "table": {}, "folder": Path("a folder")},
        {"names": ("y", "z 1"), "table": {"two": [None, "{x}"], "{port}": "{"}},
    ],
)
def test_data_is_read_as_it_was_written(given: dict[str, Any], tmp_path: Path) -> None:
    settings = Every(**given)
    # A plan is sorted text; what stands first among the splits must stay the first.
    text = json.dumps(data_of(settings), sort_keys=True)
    read = settings_from(Every, json.loads(text))
    assert (read, list(read.table)) == (settings, list(settings.table))
    file = tmp_path / "settings.json"
    file.write_text(text)
    from_file, options = read_arguments(Every, ["--port", "7", "--settings", str(file)])
    assert (from_file, options.port) == (settings, 7)


def test_what_a_server_is_not_told_keeps_its_default() -> None:
    settings = Every(count=5, most=6, apart=7)
    data = data_of(settings, without=("most",))
    assert "apart" not in data
    assert settings_from(Every, data) == Every(count=5)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"cuont": 1}, "no setting is called 'cuont'; expected count, most"),
        ({"count": "1"}, "'count' is '1'; expected a value of type int"),
        ({"count": True}, "'count' is True"),
        ({"word": "c"}, "'word' is 'c'; expected 'a' or 'b'"),
        ({"count": None}, "'count' is None"),
    ],
)
def test_wrong_data_is_an_exception(data: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        settings_from(Every, data)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("games", 0, "'games' is 0; expected 1 or more"),
        ("games", 10, "'games' is 10; expected 9 at most"),
        ("pause_s", 0.0, "'pause_s' is 0.0; expected more than 0"),
    ],
)
def test_a_server_holds_its_settings_to_their_limits(name: str, value: float, says: str) -> None:
    """As a spec is held to them, in data and in words."""
    with pytest.raises(ValueError, match=says):
        settings_from(Bounded, {name: value})
    word = "--" + name.replace("_", "-")
    with pytest.raises(ValueError, match=says):
        read_arguments(Bounded, [word, str(value)])


def test_settings_that_cannot_be_read_are_an_exception(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the setting 'times' is missing: How often"):
        settings_from(Required, {})
    file = tmp_path / "settings.json"
    with pytest.raises(ValueError, match=r"cannot be read: .*settings\.json"):
        read_arguments(Every, [f"--settings={file}"])
    file.write_text("[]")
    with pytest.raises(ValueError, match="no JSON object"):
        read_arguments(Every, ["--settings", str(file)])
    file.write_text("{}")
    # All of them are in the file: a word beside it would be a second opinion.
    with pytest.raises(ValueError, match="--count"):
        read_arguments(Every, ["--settings", str(file), "--count", "4"])


@pytest.mark.parametrize(
    ("backend", "values"),
    [
        (TEXTCRAFT, {"distractors": 0, "max_depth": 1}),
        (TEXTCRAFT, {"recipes": "invented", "invented_families": 20, "end_on_refusal": True}),
        (ALFWORLD, {"invented_games": 4, "shorten_arrivals": False, "expert": "walkthrough"}),
        (ALFWORLD, {"invented_games": 4, "invented_tasks": ["put", "look"], "wording": "move"}),
        (WEBSHOP, {"products": 40, "page_size": 5, "repeat_instruction": False, "price_seed": 3}),
        (TWENTY_QUESTIONS, {"objects": "subset", "splits": "together", "questions": 3}),
        (GUESS_MY_CITY, {"unknown": "no", "reward": "per_question"}),
    ],
)
def test_the_program_serves_what_was_planned(
    backend: EnvironmentBackend, values: dict[str, Any]
) -> None:
    options = OptionView(table=backend.fields, values=values)
    lease = backend.lease(options)
    assert not options.refusals
    opener = opener_of(lease.program, lease.settings)
    check_planned(lease.expect, {"identity": opener().identity()})
