"""What the episodes or trees of a job go on from: its input `prefixes`, cut by its settings, and
how many of them may turn out to lead elsewhere. For rollouts and searches alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentc.program.job import Job, read_rows
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.prefixes import CutRules, Prefix, cut_sources, read_sources
from agentc_backends.agents.common.runner import Row


def job_prefixes(
    job: Job, observation_prefix: str, tasks: Sequence[str], seed: int, longest: int
) -> list[Prefix]:
    """The prefixes of the job's input, by place of the task; none is longer than `longest` where
    its turns are counted. Raises FatalError where there is none."""
    given = job.config["prefix"]
    inputs = [_sources(folder) for folder in job.inputs("prefixes")]
    sources, left_out = read_sources(inputs, observation_prefix)
    cuts = CutRules(
        cut=given["cut"],
        shortest=given["shortest"],
        longest=given["longest"],
        max_reward=given["max_reward"],
        seed=seed,
        most=longest if given["counted"] else None,
    )
    prefixes = cut_sources(sources, cuts, tasks, left_out)
    counts = {name: count for name, count in sorted(left_out.items()) if count}
    job.facts(prefixes=len(prefixes), prefixes_left_out=counts)
    if not prefixes:
        raise FatalError(
            f"not one of {sum(map(len, inputs))} trajectories or trees has a prefix to go on from; "
            f"left out: {counts}. `prefix` says which are cut, and where"
        )
    return prefixes


@dataclass(slots=True)
class Divergences:
    """Prefixes that led elsewhere when they were played again, of `total`; `allowed` of them are
    within the error budget."""

    total: int
    error_budget: float
    _met: list[str] = field(default_factory=list)

    def check(self, row: Row) -> Row:
        """The row itself. Raises FatalError where it is one too many: another run would meet the
        same."""
        if row.get("diverged"):
            self._met.append(row["error"])
            allowed = int(self.error_budget * self.total + 1e-9)
            if len(self._met) > allowed:
                raise FatalError(self._too_many(allowed))
        return row

    def _too_many(self, allowed: int) -> str:
        return (
            f"{len(self._met)} of {self.total} prefixes led elsewhere when they were played again; "
            f"error_budget allows {allowed}. The last one: {self._met[-1]}. Environment, prompt "
            "and the rules for actions must be those of the trajectories; where an environment's "
            "texts vary by nature, set `same_state: reward`"
        )


def facts_behind(rows: Sequence[Row], given: Callable[[Row], int]) -> dict[str, Any]:
    """What a manifest says of prefixes; `given` counts the turns of a row that were played
    again."""
    return {
        "prefix_turns": sum(map(given, rows)),
        "diverged": sum("diverged" in row for row in rows),
    }


def _sources(folder: Path) -> list[Row]:
    names = ("trajectories.jsonl", "trees.jsonl")
    return read_rows(next(folder / name for name in names if (folder / name).exists()))
