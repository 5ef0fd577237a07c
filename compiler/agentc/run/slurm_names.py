"""Names of SLURM jobs that say what they do, `agentc-<token>-<stage>`: Snakemake's plugin (2.8.0)
gives all jobs of a run one name, by which it requests their states. Runs inside Snakemake
(light_snakemake.py)."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

PLUGIN = "snakemake_executor_plugin_slurm"
_NEEDED = ("get_submit_command", "query_job_status_sacct", "query_job_status_squeue")
_CELL = re.compile(r"@[^.:]*")
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 60
_MOST = 500
"""Names that a query lists; further stages get the run's own name."""


def stage_of(work: Sequence[str]) -> str:
    """The stage of a job, by the words that its rule has for it (`--job eto.2.dpo`), in letters
    that SLURM's commands take; cells of a sweep share a name."""
    name = _CELL.sub("", str(work[-1])) if work else ""
    return _OTHER.sub("-", name).strip("-")[:_LONGEST]


def name_by_stage(plugin: ModuleType) -> bool:
    """Adapt the imported plugin; False where it is not made as this one expects."""
    if not all(hasattr(plugin, name) for name in _NEEDED):
        return False
    names = StageNames()
    adapted: Any = plugin
    adapted.get_submit_command = names.submitting(plugin.get_submit_command)
    for query in _NEEDED[1:]:
        setattr(adapted, query, names.asking(getattr(plugin, query)))
    return True


def import_named() -> None:
    """Import the plugin, where it is installed, as Snakemake will find it."""
    if importlib.util.find_spec(PLUGIN) is not None:
        name_by_stage(importlib.import_module(PLUGIN))


class StageNames:
    """Names that jobs were submitted under, besides the one that the plugin knows."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}

    def name(self, run: str, work: Sequence[str]) -> str:
        """The name of a job; `run` is the plugin's for all of them, `<prefix>_<uuid>`."""
        prefix, _, _ = run.rpartition("_")
        stage = stage_of(work)
        name = f"{prefix}-{stage}" if prefix and stage else run
        if name not in self._known and len(self._known) >= _MOST:
            return run
        self._known[name] = None
        return name

    def submitting(self, command: Callable[..., str]) -> Callable[..., str]:
        """The command line of a submission, with the job's own name."""

        def submit(job: Any, params: Mapping[str, Any], *given: Any, **named: Any) -> str:
            work = getattr(getattr(job, "params", None), "work", None) or ()
            work = [work] if isinstance(work, str) else list(work)
            own = self.name(str(params["run_uuid"]), work)
            return command(job, {**params, "run_uuid": own}, *given, **named)

        return submit

    def asking(self, query: Callable[[str], str]) -> Callable[[str], str]:
        """A query for the states of jobs by name, with all names."""

        def ask(run: str) -> str:
            return query(",".join(dict.fromkeys([run, *self._known])))

        return ask
