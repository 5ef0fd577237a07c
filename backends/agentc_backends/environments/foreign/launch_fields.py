"""What a spec may say of an external server: its address, or the command that starts it.

Which program runs, where and with what decides what the world is, so command, folder and variables
enter keys; how long it may take does not, nor an address. Read by declarations, which import no
more; `launch.py` starts the command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentc.backend_api import OptionView
from agentc.kinds.field import Field, number, string, strings


def launch_fields(ready_path: str) -> tuple[Field, ...]:
    """The keys of `launch`; `ready_path` is where such servers usually answer first."""
    return (
        *command_fields("Program and arguments; `{port}` and `{host}` are filled in."),
        string("ready_path", "Path that answers without an error once it is ready.", ready_path,
               identity="placement"),
        number("ready_timeout_s", "How long it may take to get ready.", 120.0, above=0,
               identity="placement"),
    )  # fmt: skip


def command_fields(of_command: str) -> tuple[Field, ...]:
    """The keys of a program to start; `of_command` says what is filled into its words."""
    return (
        strings("command", of_command, (), blank=True),
        string("cwd", "Folder to start it in.", nullable=True),
        Field(name="variables", schema={"type": "object"}, default={},
              doc="Environment variables; PYTHONHASHSEED is 0 unless given."),
    )  # fmt: skip


def check_place(options: OptionView, url: str | None, launch: Mapping[str, Any] | None) -> None:
    """Where the server is has to be said once, by `url` or `launch`."""
    if launch is None:
        if url is None:
            options.refuse("url", "neither `url` nor `launch` states where the server is",
                           fix="give its address as `url`, or start it with `launch`")  # fmt: skip
        return
    if url is not None:
        options.refuse("launch", "`url` names a server that runs already, so none is to be started",
                       fix="give `url` or `launch`")  # fmt: skip
    if not launch["command"]:
        options.refuse("launch", "`launch` needs a `command`",
                       fix="write `command: [program, argument]`")  # fmt: skip
    elif not launch["command"][0].strip():
        options.refuse("launch.command", "the first word of `command` is the program, and is empty",
                       fix="write `command: [program, argument]`")  # fmt: skip
