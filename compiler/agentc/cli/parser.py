"""The parser of the command line and of each command: an option that takes one value may be typed
once. Of two, argparse by itself forgets the first and says nothing."""

from __future__ import annotations

import argparse
from typing import Any


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
