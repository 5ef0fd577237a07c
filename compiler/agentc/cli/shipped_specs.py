"""The specs that ship with agentc, and what each needs: GPUs, downloads, minutes here.

Nothing is stated twice: each spec is compiled, and its plan tells. Neighbour: `init.py`, which
lists them and begins a spec of one's own from one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.text import counted, shown_time

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.compilation import Compilation
    from agentc.plan.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecNeeds:
    """`gpus` is the most that one job has, `downloads` are repositories of the hub; `seconds` is
    the middle of what a run would take here with all cores, None for what needs either."""

    gpus: int
    downloads: tuple[str, ...]
    seconds: float | None

    @property
    def runs_here(self) -> bool:
        """Whether any machine will do: no GPU, nothing from a hub."""
        return not self.gpus and not self.downloads

    def words(self) -> str:
        """`no GPU, no weights: about 4.5 min here`, or what it takes."""
        if self.seconds is not None:
            return f"no GPU, no weights: about {shown_time(self.seconds)} here"
        parts = [counted(self.gpus, "GPU") if self.gpus else "no GPU"]
        if self.downloads:
            names = sorted(name.rpartition("/")[2] for name in self.downloads)
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            parts.append(f"{names[0]}{more}")
        return ", ".join(parts)


def shipped_specs() -> dict[str, Path]:
    """Path by name, such as `quickstart` or `eto/webshop`."""
    from agentc.resources import data_directory

    folder = data_directory() / "specs"
    paths = sorted(folder.rglob("*.yaml"))
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}


def needs_of(path: Path, table: BackendTable, scale: str | None = None) -> SpecNeeds | None:
    """What a spec needs at a scale; None for one that does not compile here, or has no such
    scale."""
    from agentc.compilation import compile_spec
    from agentc.plan.render import plan_document
    from agentc.plan.work import find_work
    from agentc.store.paths import readable_store

    compiled = compile_spec(path, {}, table, scale=scale)
    if compiled.plan is None:
        return None
    work = find_work(plan_document(compiled.plan), readable_store(None))
    jobs = work.document["jobs"]
    downloads = {str(job["config"]["repo"]) for job in jobs if job["config"].get("repo")}
    gpus = max(int((job["resources"] or {}).get("gpus") or 0) for job in jobs)
    seconds = None if gpus or downloads else _seconds(compiled, work, table)
    return SpecNeeds(gpus=gpus, downloads=tuple(sorted(downloads)), seconds=seconds)


def _seconds(compiled: Compilation, work: Work, table: BackendTable) -> float:
    from agentc.cli.costing import cost_of

    return cost_of(work, compiled, table)[1].wall.median
