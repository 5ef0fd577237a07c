"""What becomes of a trial whose run failed: whose fault it was decides, as the jobs recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from agentc.exit_codes import EXIT_DONE, EXIT_FAILED, EXIT_STORE
from agentc.ir.search import Search
from agentc.searching.follow import follow
from agentc.searching.study import SearchTrial, Study


@dataclass
class Trials:
    """A study in memory: Optuna has a software stack of its own."""

    trials: list[SearchTrial] = field(default_factory=list)

    @property
    def finished(self) -> int:
        return len(self.trials)

    def ask(self) -> tuple[int, Mapping[str, Any]]:
        return len(self.trials), {"x": float(len(self.trials))}

    def tell(self, number: int, state: Any, value: float | None, why: str = "") -> None:
        trial = SearchTrial(number=number, params={}, state=state, value=value, steps={}, why=why)
        self.trials.append(trial)


@dataclass
class Runs:
    """Runs that end with these codes, and the jobs whose records say that they failed."""

    ends: list[tuple[int, tuple[str, ...]]]
    blamed: tuple[str, ...] = ()

    def measures(self, params: Mapping[str, Any]) -> Any:
        return (type("Measured", (), {"stage": "score", "round": 0})(),)

    def run(self, params: Mapping[str, Any], until: str) -> int:
        code, self.blamed = self.ends.pop(0)
        return code

    def failed(self, params: Mapping[str, Any]) -> tuple[str, ...]:
        return self.blamed

    def value(self, params: Mapping[str, Any], measured: Any) -> float | None:
        return 0.5


def searched(*ends: tuple[int, tuple[str, ...]]) -> tuple[int, list[str], list[str]]:
    search: Any = type("Search", (), {"trials": 3, "metric": "reward", "pruner": "none"})()
    study, said = Trials(), list[str]()
    scene = Runs(list(ends))
    code = follow(cast("Search", search), cast("Study", study), scene, said.append)
    return code, [f"{trial.state} {trial.why}".strip() for trial in study.trials], said


def test_a_job_that_says_that_it_failed_fails_its_trial() -> None:
    code, trials, _ = searched((0, ()), (EXIT_FAILED, ("train",)), (0, ()))
    assert (code, trials) == (EXIT_DONE, ["complete", "failed train failed", "complete"])


def test_a_run_that_no_job_failed_leaves_its_trial_open() -> None:
    """Snakemake was killed, a node was lost, the software could not be built."""
    code, trials, said = searched((0, ()), (EXIT_FAILED, ()))
    assert (code, trials) == (EXIT_FAILED, ["complete"])
    assert "trial 2 stays open" in said[-1]


@pytest.mark.parametrize("code", [EXIT_STORE, 130])
def test_other_ends_of_a_run_are_the_ends_of_the_search(code: int) -> None:
    assert searched((code, ("train",)))[:2] == (code, [])
