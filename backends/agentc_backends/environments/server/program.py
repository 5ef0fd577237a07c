"""The program of an environment: a server until SIGTERM, or what opens it in a job's own process.

Its `job_serve.py` is `opener, main = program(Settings, open_world)`; `opener_of` finds the opener
of any. Settings come as data, or as words of a command line: those of a person who starts a server
by hand, and of plans that were made before settings were data."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

from agentc.program.settings import Declared, declared_in, settings_from, settings_with
from agentc_backends.environments.server.environment import Environment
from agentc_backends.environments.server.settings import SETTINGS

S = TypeVar("S")
Opener = Callable[[], Environment]


class NotInsideError(Exception):
    """The environment cannot be opened in this process; the message says why."""


def program(
    settings: type[S],
    open_world: Callable[[S], Opener],
    *,
    refusals: tuple[type[Exception], ...] = (),
    most_sessions: Callable[[S], int] | None = None,
) -> tuple[Callable[[Mapping[str, Any] | Sequence[str]], Opener], Callable[..., int]]:
    """The functions `opener` (of settings as data, or of the words of a command line) and
    `main`. `open_world` gives what opens an environment for each session; `refusals` are its
    exceptions (besides ValueError) that say what a person can mend; `most_sessions` is what the
    world can hold."""

    def opener(given: Mapping[str, Any] | Sequence[str]) -> Opener:
        if isinstance(given, Mapping):
            return open_world(settings_from(settings, given))
        return open_world(read_arguments(settings, given)[0])

    def main(arguments: Sequence[str] | None = None) -> int:
        # Here, so that a job that opens the environment itself, or a declaration, needs no server.
        from agentc_backends.environments.server.process import serve
        from agentc_backends.server_process import REFUSED

        refused: tuple[type[Exception], ...] = (ValueError, *refusals)
        try:
            read, options = read_arguments(settings, arguments)
            open_environment = open_world(read)
        except refused as error:
            print(error, file=sys.stderr)
            return REFUSED
        if most_sessions is not None:
            options.max_sessions = min(options.max_sessions, most_sessions(read))
        return serve(open_environment, options, refusals=refusals)

    return opener, main


def opener_of(program: Sequence[str], settings: Mapping[str, Any] | None = None) -> Opener:
    """What opens the environment that a lease's program (`-m MODULE WORDS...`) would serve with
    these settings, or by its words where there are none. Raises NotInsideError."""
    if len(program) < 2 or program[0] != "-m":
        raise NotInsideError(f"not the program of a module: {' '.join(program)}")
    name = program[1]
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        raise NotInsideError(f"{name} cannot be imported here: {error}") from error
    opener = getattr(module, "opener", None)
    if opener is None:
        raise NotInsideError(f"{name} has no `opener(settings)`: its environment needs its server")
    try:
        return cast(Opener, opener(program[2:] if settings is None else settings))
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        raise NotInsideError(str(error)) from error


def opener_inside(lease: Mapping[str, Any]) -> Opener:
    """The same of a lease in a job's file, whose environment the job's program opens itself."""
    inside = lease["inside"]
    return opener_of(inside["program"], inside.get("settings"))


def per_session(world: Callable[[S], Environment]) -> Callable[[S], Opener]:
    """The `open_world` of an environment whose sessions have nothing to share."""
    return lambda settings: partial(world, settings)


def read_arguments(
    settings: type[S], arguments: Sequence[str] | None
) -> tuple[S, argparse.Namespace]:
    """The settings, from the file of `--settings` or else from words, and the options of the
    server's process; None reads the command line. Raises ValueError."""
    from agentc_backends.environments.server.process import add_server_arguments

    given = sys.argv[1:] if arguments is None else arguments
    parser = _Parser(allow_abbrev=False)
    add_server_arguments(parser)
    parser.add_argument(SETTINGS, type=Path, help="a JSON file with all settings")
    if any(word.partition("=")[0] == SETTINGS for word in given):
        options = parser.parse_args(given)
        return settings_from(settings, _content(options.settings)), options
    # Here, since no plan of today has words to read.

    add_settings(parser, settings)
    options = parser.parse_args(given)
    return settings_of(settings, options), options


def _content(file: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except OSError as error:
        raise ValueError(f"the settings cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{file} holds no JSON object of settings")
    return content


def spec_path(path: str) -> Path:
    """A path of a spec: a relative one starts in AGENTC_SPEC_DIR, the spec's folder, where set."""
    return Path(os.environ.get("AGENTC_SPEC_DIR", "")) / Path(path).expanduser()


def spec_content(path: str) -> bytes | None:
    """Of a file that a spec names; None where it cannot be read."""
    try:
        return spec_path(path).read_bytes()
    except OSError:
        return None


class _Parser(argparse.ArgumentParser):
    """Wrong words are an exception: the process may be a job's."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{self.format_usage()}{self.prog}: error: {message}")


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
