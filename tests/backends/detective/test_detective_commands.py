"""What a player may say, told without the game."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc_backends.environments.detective.commands import MOST_LETTERS, forbidden, speakable, tidy
from agentc_backends.environments.detective.game import LegalActionCache

META = frozenset({"purloin", "goto", "transcrip", "restart", "help", "note", "score"})


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("  Take   PAPER ", "take paper"),
        ("north\ntake paper", "north"),
        ("N", "north"),
        ("sw", "southwest"),
        ("take n", "take n"),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_an_action_is_its_first_line_in_plain_words(said: str, command: str) -> None:
    assert tidy(said) == command


@pytest.mark.parametrize(
    "command",
    [
        "purloin all",
        "transcript on",  # the parser reads nine letters
        "take paper. north",
        "take paper.",
        "take paper then north",
        "oops purloin",
        "undo",
        "me, purloin all",
        "guard,goto 88",
        "showverb eight",  # denied although this dictionary does not mark it
    ],
)
def test_what_steps_out_of_the_game_is_forbidden(command: str) -> None:
    assert forbidden(command, META, 9)


@pytest.mark.parametrize("command", ["take note", "read note", "ask guard about score", "north"])
def test_a_name_that_is_also_a_meta_verb_may_be_said(command: str) -> None:
    assert not forbidden(command, META, 9)


def test_only_short_plain_text_is_speakable() -> None:
    assert speakable("take paper")
    assert not speakable("")
    assert not speakable("take\tpaper")
    assert not speakable("nimm Übel")
    assert not speakable("x" * (MOST_LETTERS + 1))


def test_legal_actions_are_remembered_by_the_next_server(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "legal.jsonl"
    first, beside = LegalActionCache(file), LegalActionCache(file)
    first.put("a", ("north",))
    beside.put("b", ("east", 'say "it\'s"'))
    with file.open("ab") as torn:
        torn.write(b'["c", ["no')
    later = LegalActionCache(file)
    assert later.get("a") == ("north",)
    assert later.get("b") == ("east", 'say "it\'s"')
    assert later.get("c") is None


def test_the_memory_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "legal.jsonl"
    first = LegalActionCache(file, most_kept=3)
    for number in range(10):
        first.put(str(number), ("north",))
    assert len(first) == 3
    again = LegalActionCache(file, most_kept=3)
    assert len(again) == 3
    assert again.get("9") == ("north",)
    # What no longer fits was taken out of the file.
    assert len(file.read_bytes().splitlines()) == 3


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder should be")
    found = LegalActionCache(tmp_path / "taken" / "legal.jsonl")
    found.put("a", ("north",))
    assert found.get("a") == ("north",)
