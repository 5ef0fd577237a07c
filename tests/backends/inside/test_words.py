"""Settings by the words of a command line: plans made before settings were data, and people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.backends.inside.test_settings import Every, Required

from agentc_backends.environments.agentgym.settings import AgentGymSettings
from agentc_backends.environments.alfworld.settings import AlfworldSettings
from agentc_backends.environments.detective.settings import DetectiveSettings
from agentc_backends.environments.sciworld.settings import SciworldSettings
from agentc_backends.environments.server.program import opener_of, read_arguments
from agentc_backends.environments.textcraft.settings import TextCraftSettings
from agentc_backends.environments.webshop.settings import WebShopSettings

ADDRESS = ["--port", "0", "--ready-file", "unused"]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("", {}),
        ("--count 0 --most 0 --share 0 --quick --no-whole --word b",
         {"count": 0, "most": 0, "share": 0.0, "quick": True, "whole": False, "word": "b"}),
        ("--least null --names y z --folder a/b --table {}",
         {"least": None, "names": ("y", "z"), "folder": Path("a/b"), "table": {}}),
    ],
)  # fmt: skip
def test_words_of_each_type(words: str, meant: dict[str, Any]) -> None:
    assert read_arguments(Every, words.split())[0] == Every(**meant)


@pytest.mark.parametrize(
    ("settings", "words", "meant"),
    [
        (TextCraftSettings, ["--max-depth", "2", "--distractors", "10", "--expert-style",
         "stepwise", "--recipes", "minecraft"], {"max_depth": 2}),
        (WebShopSettings, ["--catalogue", "c.json", "--catalogue-sha256", "ab", "--products", "7",
         "--splits", '{"test":"0-9"}', "--expert-query", "title", "--instruction-once"],
         {"catalogue": "c.json", "catalogue_sha256": "ab", "products": 7,
          "splits": {"test": "0-9"}, "expert_query": "title", "repeat_instruction": False}),
        (SciworldSettings, ["--splits", '{"test":{"boil":"0-13"}}', "--simplifications",
         "openDoors", "openContainers", "--snap-actions", "--heap-mb", "300"],
         {"splits": {"test": {"boil": "0-13"}}, "snap_actions": True, "heap_mb": 300,
          "simplifications": ("openDoors", "openContainers")}),
        (SciworldSettings, ["--simplifications", ""], {"simplifications": ()}),
        (AlfworldSettings, ["--whole-arrivals", "--invented-rooms", "kitchen"],
         {"shorten_arrivals": False, "invented_rooms": ("kitchen",)}),
        (DetectiveSettings, ["--step-timeout", "2.5"], {"step_timeout_s": 2.5}),
        (AgentGymSettings, ["--server", "maze", "--splits", '{"test":"0-3"}', "--timeout", "7",
         "--launch", '{"command":["a","\\u007bport}"]}'],
         {"server": "maze", "splits": {"test": "0-3"}, "timeout_s": 7.0,
          "launch": {"command": ["a", "{port}"]}}),
    ],
)  # fmt: skip
def test_words_of_a_command_line(settings: Any, words: list[str], meant: dict[str, Any]) -> None:
    read, options = read_arguments(settings, [*ADDRESS, *words])
    assert read == settings(**meant)
    assert options.ready_file == Path("unused")


def test_a_world_is_opened_by_the_words_of_a_command_line() -> None:
    module = "agentc_backends.environments.textcraft.job_serve"
    world = opener_of(["-m", module, *ADDRESS, "--max-depth", "1", "--end-on-refusal"])()
    told = world.identity()["options"]
    assert (told["max_depth"], told["end_on_refusal"]) == (1, True)


@pytest.mark.parametrize("words", [["--word", "c"], ["--count", "x"], ["--table", "[]"], ["--no"]])
def test_wrong_words_are_an_exception(words: list[str]) -> None:
    with pytest.raises(ValueError, match=words[0]):
        read_arguments(Every, words)


def test_a_word_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="--times"):
        read_arguments(Required, [])
