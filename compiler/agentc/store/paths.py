"""Which store, where the records of runs lie next to its objects, and the variant that a run is of:
an experiment's name, a scale, and the params that were chosen.

Run folders, reports and what `gc` keeps are named by a variant's label (docs/design/running.md).
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentc.runtime.store.file_system import mounted_file_system, writing
from agentc.runtime.store.layout import StoreLayout, adopt_umask

_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]")
FULL = "full"
"""What `--scale` calls the spec as it is written, where the spec declares no scale of that name."""
_LONGEST = 120
"""Characters of a label; file systems take 255 bytes, and other names are made of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """`chosen` are the params given with `-p` whose values are not their defaults."""

    name: str
    scale: str | None = None
    chosen: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """`quickstart`, `quickstart@smoke`, `quickstart@smoke,seed=1`: for people, and safe as the
        name of a folder. What had to be left out of it is told apart by a digest."""
        pairs = sorted(self.chosen.items())
        texts = [(name, value_text(value)) for name, value in pairs]
        safe = [f"{name}={_UNSAFE.sub('_', text)}" for name, text in texts]
        parts = ",".join([*([self.scale] if self.scale is not None else []), *safe])
        label = f"{self.name}@{parts}" if parts else self.name
        plain = all(text and not _UNSAFE.search(text) for _, text in texts)
        if plain and len(label) <= _LONGEST:
            return label
        whole = json.dumps([self.name, self.scale, pairs], sort_keys=True)
        return f"{label[:_LONGEST]}~{hashlib.sha256(whole.encode('utf-8')).hexdigest()[:8]}"


def variant_of(document: Mapping[str, Any]) -> Variant:
    """The variant that a plan (plan.json, decoded) is of."""
    return Variant(
        name=str(document["name"]),
        scale=(document.get("experiment") or {}).get("scale"),
        chosen=document.get("chosen") or {},
    )


def value_text(value: Any) -> str:
    """A param's value, as `-p` takes it."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


STORE_VARIABLE = "AGENTC_STORE"
DEFAULT = Path(".agentc") / "store"
_OF_KERNEL = frozenset(["proc", "sysfs", "devpts", "cgroup", "cgroup2", "debugfs", "securityfs"])
"""File systems that hold what the kernel shows, and no files of users."""


def store_root(option: str | None) -> Path:
    """The store's folder: the option, else $AGENTC_STORE, else `.agentc/store` here."""
    return Path(option or os.environ.get(STORE_VARIABLE) or DEFAULT).absolute()


def open_store(option: str | None) -> StoreLayout:
    """The store by that rule; its folder is made when it is not there.

    Raises OSError when it cannot be made or written to, StoreUnusableError when not even read.
    """
    root = readable_store(option).root
    with writing("results", root):
        _create(root)
        if not os.access(root, os.W_OK | os.X_OK):
            read_only = os.statvfs(root).f_flag & os.ST_RDONLY
            raise OSError(errno.EROFS if read_only else errno.EACCES, "no write access", str(root))
    layout = StoreLayout(root)
    adopt_umask(layout)
    return layout


def _create(root: Path) -> None:
    """Make the store's folder. Raises StoreUnusableError where none can ever be."""
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        kind, point = mounted_file_system(root)
        if error.errno == errno.ENOENT or kind in _OF_KERNEL:
            raise StoreUnusableError(
                f"cannot create {root}: {kind or 'the file system'} at {point or '/'} takes no new "
                f"folders; --store or {STORE_VARIABLE} names another place"
            ) from error
        raise


class StoreUnusableError(Exception):
    """The store cannot be looked into; the message is for people."""


def readable_store(option: str | None) -> StoreLayout:
    """The store by that rule, to be read; that there is none yet is no fault.

    Raises StoreUnusableError, here and not deep in a command, when it cannot be read."""
    root = store_root(option)
    try:
        for folder in (root, root / "objects", root / "runs"):
            with suppress(FileNotFoundError), os.scandir(folder) as entries:
                next(entries, None)
    except OSError as error:
        raise StoreUnusableError(unusable(error, root)) from error
    return StoreLayout(root)


def unusable(error: OSError, root: Path) -> str:
    """Why a store cannot be used, for people."""
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return f"no usable store: {root} is no folder; --store or {STORE_VARIABLE} names another"
    what = "" if error.filename in (None, str(root)) else f" ({error.filename})"
    return f"the store {root} cannot be read: {error.strerror or error}{what}"


def plans_folder(layout: StoreLayout) -> Path:
    """Compiled plans lie beside the store: `.agentc/plans`."""
    return layout.root.parent / "plans"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """`runs/<label>/` of a store: what the last run of an experiment at a scale, with chosen params
    (`variant.py`), meant, and what runs did.

    `last_plan` is the plan that was run last and `previous_plan` the different one before it;
    `history` has one line for each run.
    """

    path: Path

    @classmethod
    def of(cls, layout: StoreLayout, label: str) -> RunFolder:
        """The folder of a variant, by its label."""
        return cls(layout.root / "runs" / label)

    @classmethod
    def of_plan(cls, layout: StoreLayout, document: Mapping[str, Any]) -> RunFolder:
        """The folder that runs of a plan (plan.json, decoded) have."""
        return cls.of(layout, variant_of(document).label)

    @property
    def label(self) -> str:
        return self.path.name

    @property
    def last_plan(self) -> Path:
        return self.path / "last-plan.json"

    @property
    def previous_plan(self) -> Path:
        return self.path / "previous-plan.json"

    @property
    def history(self) -> Path:
        return self.path / "history.jsonl"

    def stored_plan(self, digest: str) -> Path:
        """The plan of a run in the history, which names it by the digest of its text."""
        return self.path / "plans" / f"{digest}.json.gz"

    def stored_plans(self) -> list[Path]:
        """All that were kept."""
        return sorted(self.stored_plan("").parent.glob("*.json.gz"))

    @property
    def estimate(self) -> Path:
        """estimate.json: what was expected of each object before the job that makes it ran."""
        return self.path / "estimate.json"

    @property
    def report(self) -> Path:
        """report.html: the page that people see."""
        return self.path / "report.html"

    @property
    def report_source(self) -> Path:
        """report.json: the object that report.html was made from."""
        return self.path / "report.json"

    @property
    def state(self) -> Path:
        """state.json: the run that is going on, or the last one."""
        return self.path / "state.json"

    @property
    def active(self) -> Path:
        """Records of the runs at work, which hold them locked."""
        return self.path / "active"

    @property
    def in_use(self) -> Path:
        """A file for each run that goes on, naming the plan that it uses."""
        return self.path / "in-use"


def run_names(layout: StoreLayout) -> list[str]:
    """Labels of what was run with this store, the latest first."""
    return [folder.label for _, folder in run_folders(layout)]


def all_folders(layout: StoreLayout) -> list[RunFolder]:
    """Folders of runs, with those whose first run is only beginning."""
    runs = layout.root / "runs"
    return [RunFolder(path) for path in sorted(runs.iterdir())] if runs.is_dir() else []


def run_folders(layout: StoreLayout) -> list[tuple[float, RunFolder]]:
    """Folders of runs, each with the time when its last run began, the latest first; those that
    have a history and lost their last plan, too."""
    known = []
    for folder in all_folders(layout):
        # Somebody may be forgetting a run this moment.
        with suppress(FileNotFoundError):
            # A run whose plan is that of the run before writes its state alone.
            records = [path for path in (folder.state, folder.last_plan, folder.history)
                    if path.is_file()]  # fmt: skip
            if set(records) - {folder.state}:
                known.append((records[0].stat().st_mtime, folder))
    return sorted(known, key=lambda each: (each[0], each[1].label), reverse=True)
