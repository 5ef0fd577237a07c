"""Settings from the words of a command line: those of a person who starts a server by hand, and of
plans that were made before settings were data. Nothing writes them; neighbour: `program.py`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any, TypeVar

from agentc_backends.environments.server.settings import Declared, declared_in, settings_with

S = TypeVar("S")
_NULL = "null"
"""The word for None where that is not the default."""
_WORDS: Mapping[str, str] = {
    "repeat_instruction": "--instruction-once",
    "shorten_arrivals": "--whole-arrivals",
    "step_timeout_s": "--step-timeout",
    "timeout_s": "--timeout",
}
"""Those that are not `--` and the setting's name."""


def add_settings(parser: argparse.ArgumentParser, settings: type) -> None:
    """An argument for each; that of a boolean changes the default."""
    for each in declared_in(settings):
        if not each.about.served:
            continue
        how: dict[str, Any] = {"dest": each.name, "help": each.about.doc.replace("%", "%%")}
        if each.kind is bool:
            how["action"] = "store_false" if each.default else "store_true"
        else:
            how["required"] = each.default is MISSING
            how["type"] = _reader(each)
            how |= {"nargs": "+"} if each.kind is tuple else {}
            how |= {"choices": each.choices} if each.choices else {}
            how["default"] = None if each.default is MISSING else each.default
        parser.add_argument(_word(each), **how)


def settings_of(settings: type[S], parsed: argparse.Namespace) -> S:
    """What a parser of `add_settings` read. Raises ValueError."""
    given = {e.name: getattr(parsed, e.name) for e in declared_in(settings) if e.about.served}
    # An empty word stands for no words at all.
    lists = {name: tuple(filter(None, v)) for name, v in given.items() if isinstance(v, list)}
    return settings_with(settings, {**given, **lists})


def _word(each: Declared) -> str:
    plain = ("--no-" if each.default is True else "--") + each.name.replace("_", "-")
    return _WORDS.get(each.name, plain)


def _reader(each: Declared) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        if each.nullable and each.default is not None and text == _NULL:
            return None
        if each.kind in (int, float, Path):
            return each.kind(text)
        if each.kind not in (dict, Mapping):
            return text
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError("not a JSON object")
        return value

    # What argparse calls it where a word is wrong.
    read.__name__ = each.kind.__name__
    return read
