"""Output whose reader may go away: `agentc run | head -1`. A command that does something continues
without its reader, and ends with its own exit code; one that only prints ends in silence."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Literal, TypeAlias

Reaction: TypeAlias = Literal["continue", "continue silently", "end"]

_VERDICTS = frozenset({"check", "plan", "diff", "report --claims"})
"""They change nothing, and their exit code says what they found."""
_PRINTING = frozenset(
    {
        *(
            "status",
            "logs",
            "why",
            "graph",
            "explain",
            "init --templates",
            "dev schema",
            "dev completion",
        ),
        *("store ls", "software ls", "software hash", "data ls"),
    }
)
_OF_SEVERAL = frozenset({"store", "software", "data", "dev"})
_FORMS = {"report": "--claims", "init": "--templates", "status": "--forget"}
"""Options that make another command of one."""
_WATCHING = "--watch"


def reaction_of(words: Sequence[str]) -> Reaction:
    """What a command does when nobody reads its output any more: a command that is not known to
    only print continues."""
    typed = [word for word in words if not word.startswith("-")]
    if not typed or {"--help", "--version", "-h", _WATCHING} & set(words):
        return "end"
    name = typed[0]
    if _FORMS.get(name) in words:
        name += f" {_FORMS[name]}"
    if name in _OF_SEVERAL:
        name += f" {typed[1]}" if len(typed) > 1 else " ls"
    if name in _VERDICTS:
        return "continue silently"
    return "end" if name in _PRINTING else "continue"


def survive_readers(reaction: Reaction) -> None:
    """Have standard output and standard error survive readers that go away, as `reaction` says.
    Nothing where they are not those of the process (a test's, an editor's)."""
    if reaction == "end" or sys.stdout is not sys.__stdout__ or sys.stderr is not sys.__stderr__:
        return
    sys.stderr = _steady(sys.stderr, note="")
    note = (
        "agentc: nobody reads the output any more ({why}); the command continues without it, and "
        "its exit code says how it ended\n"
    )
    sys.stdout = _steady(sys.stdout, note=note if reaction == "continue" else "")


class _SteadyFile(io.FileIO):
    """A file of this process that becomes /dev/null at the first write that fails."""

    def __init__(self, descriptor: int, note: str) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._note = note

    def write(self, data: object) -> int:
        """Bytes written, or dropped."""
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            # Programs that are started later write there, too.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            note, self._note = self._note, ""
            if note:
                print(note.format(why=error.strerror), end="", file=sys.stderr, flush=True)
            return memoryview(data).nbytes  # type: ignore[arg-type]


def _steady(stream: object, note: str) -> io.TextIOWrapper:
    """The stream of a terminal, file or pipe; lines show as they are written, to a pipe too."""
    assert isinstance(stream, io.TextIOWrapper)
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_SteadyFile(stream.fileno(), note)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=True,
        write_through=stream.write_through,
    )
