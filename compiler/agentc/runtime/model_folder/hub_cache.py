"""The cache of the Hugging Face hub's client on this machine: where it is, and which commits of a
repository it holds. Data sets are written `datasets/owner/name`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

DATA_SETS = "datasets/"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MOST_BYTES = 100


def cache_folder() -> Path:
    """Where the hub's client keeps what it downloads: HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME."""
    variables = os.environ
    if variables.get("HF_HUB_CACHE"):
        return Path(variables["HF_HUB_CACHE"]).expanduser()
    home = variables.get("HF_HOME")
    if not home:
        base = variables.get("XDG_CACHE_HOME") or "~/.cache"
        return Path(base).expanduser() / "huggingface" / "hub"
    return Path(home).expanduser() / "hub"


def snapshot_folder(repo: str, commit: str) -> Path:
    """Where the files of a commit are, if they are in the cache."""
    return _repository(repo) / "snapshots" / commit


def cached_commit(repo: str, revision: str) -> str | None:
    """The commit that a branch or tag was when it was downloaded, if its files are still there."""
    if ".." in revision.split("/"):
        return None
    try:
        with (_repository(repo) / "refs" / revision).open("rb") as file:
            commit = file.read(_MOST_BYTES).decode("ascii").strip()
    except (OSError, ValueError):
        return None
    is_there = _COMMIT.fullmatch(commit) is not None and snapshot_folder(repo, commit).is_dir()
    return commit if is_there else None


def _repository(repo: str) -> Path:
    kind = "datasets" if repo.startswith(DATA_SETS) else "models"
    return cache_folder() / "--".join((kind, *repo.removeprefix(DATA_SETS).split("/")))
