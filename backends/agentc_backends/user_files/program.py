"""A program of the user's own in a spec: the words that start it, its files, and its software.

Read alike by whoever declares such a program: `stage/backend.py`, and agents that are programs
(`agents/command/backend.py`). Neighbours: `files.py` reads files, `laid_out.py` puts them
where the program starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from agentc.backend_api import SoftwareEnvironment, StageView
from agentc.backend_api.script_header import ScriptError, ScriptHeader, read_script
from agentc_backends.software import LIGHT
from agentc_backends.user_files.files import names_in, texts_of


def program_words(
    view: StageView, backend: str, *, in_options: bool = False
) -> tuple[list[str], str | None]:
    """What is started, and which file of it is a Python script; given `in_options` or not."""
    run, command = view.get("run"), view.get("command")
    words = [str(word) for word in command] if isinstance(command, list) else []
    if isinstance(run, str) and words:
        view.refuse("command", "`run` says already what is started", fix="remove one of them")
    elif not words and not isinstance(run, str):
        view.refuse(
            "run",
            f"{backend} needs a program",
            fix="write `options: {run: FILE.py}`, or `options: {command: [program, argument]}`"
            if in_options
            else "write `run: FILE.py`, or `command: [program, argument]`",
        )
    if words and not words[0].strip():
        view.refuse(
            "command",
            "the first word of `command` is the program, and is empty",
            fix="write `command: [program, argument]`",
        )
    return ([], run) if isinstance(run, str) else (words, None)


def program_files(view: StageView, main: str | None) -> Iterator[tuple[str, str]]:
    """Names and texts of the script and of its further files."""
    sources = [("sources", name) for name in names_in(view, "sources")]
    return texts_of(view, [*([] if main is None else [("run", main)]), *sources])


def header_of(view: StageView, text: str, main: str | None) -> ScriptHeader:
    """What a script says of itself; refused where it is no Python."""
    try:
        return ScriptHeader() if main is None else read_script(text)
    except ScriptError as error:
        view.refuse("run", f"{main} line {error.line}: {error}", fix=error.fix)
        return ScriptHeader()


def program_software(view: StageView) -> SoftwareEnvironment:
    """What the spec's own lock says, or what other light jobs run in."""
    name = view.get("requirements")
    if not isinstance(name, str):
        return LIGHT
    content = view.file(name)
    try:
        lock = "" if content is None else content.decode("utf-8")
    except UnicodeDecodeError:
        lock = ""
    if not lock:
        view.refuse(
            "requirements",
            f"there is no readable lock {name}",
            fix="give a file of pinned requirements; `agentc env hash` adds the hashes",
        )
        return LIGHT
    stem = PurePosixPath(name).stem
    return SoftwareEnvironment(name=f"script-{stem}", lock=lock, file=name)
