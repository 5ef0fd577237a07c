"""Files of a user's own that go into a plan as text, and bounds of what such programs score: for
declarations. Where they are laid out again: `laid_out.py`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from agentc.backend_api import OptionView, StageView
from agentc.kinds.field import Json

_MOST_CHARACTERS = 512 * 1024
"""Of all files of a stage: they stand in the plan, and in the manifest of what they made."""


def names_in(view: StageView, path: str) -> list[str]:
    """The texts of a setting that is a list of them."""
    listed = view.get(path)
    return [str(name) for name in listed] if isinstance(listed, list) else []


def texts_of(view: OptionView, named: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
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


def told_files(files: Mapping[str, str]) -> list[Json]:
    """Files as a job's config has them."""
    return [{"path": place_of(name), "text": text} for name, text in files.items()]


def place_of(name: str) -> str:
    """Where a file stands in the folder that the program is started in: under the spec's name for
    it, and inside of the folder, whatever the name is."""
    path = PurePosixPath(name)
    parts = ["up" if part == ".." else part for part in path.parts if part not in ("/", ".")]
    return str(PurePosixPath(*(["root"] if path.is_absolute() else []), *parts))


def range_of(view: StageView) -> list[Json]:
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
