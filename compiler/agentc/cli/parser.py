"""The parser of the command line and of each command, with what commands share that compile
nothing.

An option that takes one value may be typed once: of two, argparse by itself drops the first
without a message.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol


class Executable(Protocol):
    """What a command consists of: a module with these members."""

    @property
    def HELP(self) -> str: ...  # noqa: N802

    @property
    def configure(self) -> Callable[[argparse.ArgumentParser], None]: ...

    @property
    def execute(self) -> Callable[[argparse.Namespace], int]: ...


def add_command(
    actions: argparse._SubParsersAction[Any], name: str, command: Executable, dest: str = "command"
) -> None:
    """A command among the actions of a parser; `dest` of the arguments will hold it."""
    parser = actions.add_parser(
        name,
        help=command.HELP,
        description=command.HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(**{dest: command, "parser": parser})
    command.configure(parser)


class OnceAction(argparse.Action):
    """Stores a value. Another value of the same option is a usage error; the same one again is not.

    What is to be typed several times says so (`action="append"`)."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        held = getattr(namespace, self.dest, self.default)
        if option_string is not None and held is not self.default and held != values:
            raise typed_twice(self, held, values)
        setattr(namespace, self.dest, values)


def typed_twice(option: argparse.Action, first: object, then: object) -> argparse.ArgumentError:
    """What is wrong with an option that has two values, one of which would be ignored."""
    return argparse.ArgumentError(option, f"typed twice: first {first}, then {then}")


class CommandParser(argparse.ArgumentParser):
    """An ArgumentParser whose plain options are OnceActions, in its subparsers too."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        for name in (None, "store"):
            self.register("action", name, OnceAction)


def add_store_argument(parser: argparse.ArgumentParser) -> None:
    """For commands that read or fill a store."""
    parser.add_argument("--store", metavar="DIR", help="default: $AGENTC_STORE, else .agentc/store")


def write_new_file(target: Path, text: str) -> bool:
    """Whether it was written; else standard error says why. What is there already stays."""
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        print(f"agentc: {target} is there already; name another FILE", file=sys.stderr)
        return False
    except OSError as error:
        print(f"agentc: cannot write {target}: {error.strerror}", file=sys.stderr)
        return False
    return True


def positive(text: str) -> int:
    """A count of the command line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected 1 or more")
    return number


def add_jobs_argument(parser: argparse.ArgumentParser) -> None:
    """-j, which means the same to `run`, `search` and `plan`."""
    parser.add_argument(
        "-j",
        "--jobs",
        type=positive,
        default=None,
        metavar="N",
        help="CPU cores that jobs on this machine use together (default: all); with a cluster"
        " profile, jobs in the queue at once (default: its `jobs:`, else 100)",
    )
