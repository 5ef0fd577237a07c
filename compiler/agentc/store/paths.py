"""Which store, and where the records of runs lie beside its objects."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from agentc.runtime.layout import StoreLayout
from agentc.runtime.modes import adopt_umask
from agentc.runtime.trouble import writing

STORE_VARIABLE = "AGENTC_STORE"
DEFAULT = Path(".agentc") / "store"


def store_root(option: str | None) -> Path:
    """The store's folder: the option, else $AGENTC_STORE, else `.agentc/store` here."""
    return Path(option or os.environ.get(STORE_VARIABLE) or DEFAULT).absolute()


def open_store(option: str | None) -> StoreLayout:
    """The store by that rule; its folder is made when it is not there.

    Raises OSError when it cannot be made or written to.
    """
    root = store_root(option)
    with writing("results", root):
        root.mkdir(parents=True, exist_ok=True)
        if not os.access(root, os.W_OK | os.X_OK):
            read_only = os.statvfs(root).f_flag & os.ST_RDONLY
            raise OSError(errno.EROFS if read_only else errno.EACCES, "no write access", str(root))
    layout = StoreLayout(root)
    adopt_umask(layout)
    return layout


def plans_folder(layout: StoreLayout) -> Path:
    """Compiled plans lie beside the store: `.agentc/plans`."""
    return layout.root.parent / "plans"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """`runs/<name>/` of a store: what the last run of an experiment meant, and what runs did.

    `last_plan` is the plan that was run last and `previous_plan` the different one before it;
    `history` has one line for each run.
    """

    path: Path

    @classmethod
    def of(cls, layout: StoreLayout, name: str) -> RunFolder:
        """The folder of an experiment."""
        return cls(layout.root / "runs" / name)

    @property
    def last_plan(self) -> Path:
        return self.path / "last-plan.json"

    @property
    def previous_plan(self) -> Path:
        return self.path / "previous-plan.json"

    @property
    def history(self) -> Path:
        return self.path / "history.jsonl"

    def kept_plan(self, digest: str) -> Path:
        """The plan of a run in the history, which names it by the digest of its text."""
        return self.path / "plans" / f"{digest}.json.gz"

    @property
    def estimate(self) -> Path:
        """estimate.json: what was expected of each object before the job that makes it ran."""
        return self.path / "estimate.json"

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
    """Experiments that were run with this store, the latest first."""
    folder = layout.root / "runs"
    plans = [RunFolder(path).last_plan for path in folder.iterdir()] if folder.is_dir() else []
    known = [(plan.stat().st_mtime, plan.parent.name) for plan in plans if plan.is_file()]
    return [name for _, name in sorted(known, reverse=True)]
