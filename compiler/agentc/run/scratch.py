"""Scratch folders of runs, in the plan's folder: made for each run, removed at its end; what a
killed run left is removed by the next."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "agentc-"
_OF_EXECUTORS = "tmp.*"
"""Folders that each Snakemake makes for scripts of jobs, and leaves where it is killed."""


def scratch_folder(directory: Path, token: str) -> Path:
    """That of a run with this token; its name says whose it is."""
    return directory / ".snakemake" / f"{_PREFIX}{token}"


@contextmanager
def removed_scratch(directory: Path, token: str) -> Iterator[None]:
    """Remove that of a run when the block is left, however it ends."""
    try:
        yield
    finally:
        shutil.rmtree(scratch_folder(directory, token), ignore_errors=True)


def remove_leftovers(directory: Path, alive: Collection[str]) -> None:
    """Remove what runs have left that are over: all but those with these tokens. Nothing of
    Snakemake's own where there are others, for nobody knows whose it is."""
    for folder in (directory / ".snakemake").glob(f"{_PREFIX}*"):
        if folder.name.removeprefix(_PREFIX) not in alive:
            shutil.rmtree(folder, ignore_errors=True)
    if not alive:
        for folder in (directory / ".snakemake").glob(_OF_EXECUTORS):
            shutil.rmtree(folder, ignore_errors=True)
