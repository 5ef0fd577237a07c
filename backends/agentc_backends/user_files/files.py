"""Files of a user's program in a spec, for declarations: the words that start it, the text of its
files, which goes into the plan, its software, and the bounds of what it scores."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from agentc.backend_api import OptionView, Software, StageView
from agentc.backend_api.script_header import ScriptError, ScriptHeader, read_script
from agentc.kinds.field import Json
from agentc_backends.software import LIGHT

_MOST_CHARACTERS = 512 * 1024
"""Of all files of a stage: they stand in the plan, and in the manifest of what they made."""


def listed_names(view: StageView, path: str) -> list[str]:
    """The texts of a setting that is a list of them."""
    listed = view.get(path)
    return [str(name) for name in listed] if isinstance(listed, list) else []


def read_texts(view: OptionView, named: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Names and texts of files, each given with the setting that names it; what cannot be read is
    refused there."""
    room = _MOST_CHARACTERS
    for path, name in named:
        content = view.file(name)
        if content is None:
            view.refuse(
                path,
                f"there is no readable file {name}",
                fix="give files, relative to the spec; of a folder, each file",
            )
            continue
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            view.refuse(
                path,
                f"{name} is no text in UTF-8",
                fix="data belong into a stage of kind dataset, or are made by a script",
            )
            continue
        room -= len(text)
        if room < 0:
            view.refuse(
                path,
                f"with {name} the files of this stage have more than {_MOST_CHARACTERS} characters",
                fix="they go into the plan; data belong into a stage of kind dataset",
            )
            return
        yield name, text


def file_entries(files: Mapping[str, str]) -> list[Json]:
    """Files as a job's config has them."""
    return [{"path": place_in_folder(name), "text": text} for name, text in files.items()]


def place_in_folder(name: str) -> str:
    """Where a file stands in the folder that the program is started in: under the spec's name for
    it, and inside of the folder, whatever the name is."""
    path = PurePosixPath(name)
    parts = ["up" if part == ".." else part for part in path.parts if part not in ("/", ".")]
    return str(PurePosixPath(*(["root"] if path.is_absolute() else []), *parts))


def score_range(view: StageView) -> list[Json]:
    """The bounds of scores; refused where they are none."""
    told = view.get("range")
    match told:
        case [int() | float() as low, int() | float() as high] if low < high:
            return [low, high]
    written = json.dumps(told)
    view.refuse(
        "range",
        f"`range` is {written}: it is no range of scores",
        fix="write `[lowest, highest]`",
    )
    return [0.0, 1.0]


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
    sources = [("sources", name) for name in listed_names(view, "sources")]
    return read_texts(view, [*([] if main is None else [("run", main)]), *sources])


def script_header(view: StageView, text: str, main: str | None) -> ScriptHeader:
    """What a script says of itself; refused where it is no Python."""
    try:
        return ScriptHeader() if main is None else read_script(text)
    except ScriptError as error:
        view.refuse("run", f"{main} line {error.line}: {error}", fix=error.fix)
        return ScriptHeader()


def program_software(view: StageView) -> Software:
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
            fix="give a file of pinned requirements; `agentc software hash` adds the hashes",
        )
        return LIGHT
    stem = PurePosixPath(name).stem
    return Software(name=f"script-{stem}", lock=lock, file=name)
