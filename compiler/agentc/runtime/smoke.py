"""What a run at the scale `smoke` shows above its numbers, in the terminal and in the report:
it ran the real graph with small models on a few tasks. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

SMOKE = "smoke"
_KIND = "model"
_SCRATCH = "model.scratch"
_MOST = 3


def smoke_headline(
    scale: str | None, done: int, total: int, jobs: Iterable[Mapping[str, Any]]
) -> str:
    """`smoke: 25 of 25 jobs of the real graph ran with a random tiny model; numbers mean nothing`;
    "" at every other scale. `jobs` are jobs or manifests, with `kind`, `backend` and `config`."""
    if scale != SMOKE:
        return ""
    models = list(dict.fromkeys(_words(job) for job in jobs if job.get("kind") == _KIND))
    if len(models) > _MOST:
        models = [*models[:_MOST], f"{len(models) - _MOST} more models"]
    ran = f"{SMOKE}: {done} of {total} jobs of the real graph ran"
    return f"{ran}{f' with {_listed(models)}' if models else ''}; numbers mean nothing"


def _words(job: Mapping[str, Any]) -> str:
    if job.get("backend") == _SCRATCH:
        return "a random tiny model"
    config = job.get("config") or {}
    return str(config.get("repo") or config.get("path") or job.get("id") or job.get("backend"))


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
