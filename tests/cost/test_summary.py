"""Totals and the wall time of a schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agentc.cost import Estimate, Quantity, cost_table, summarise
from agentc.cost.place import Place
from agentc.cost.render import summary_lines
from agentc.text import format_count, format_duration, format_size

Job = tuple[str, float, Sequence[str]]


def plan(
    *jobs: Job, sessions: Sequence[Sequence[str]] = (), cpus: int = 1, spread: float = 0.0
) -> tuple[dict[str, Any], dict[str, Estimate]]:
    document = {
        "jobs": [
            {
                "id": name,
                "stage": name,
                "kind": "sft",
                "key": name,
                "inputs": {"data": [f"sft/{each}" for each in needs]},
            }
            for name, _, needs in jobs
        ],
        "sessions": [
            {"id": f"serve.{k}", "key": str(k), "members": list(members)}
            for k, members in enumerate(sessions)
        ],
    }
    estimates = {
        name: Estimate(
            id=name,
            stage=name,
            kind="sft",
            object=f"sft/{name}",
            state="run",
            seconds=Quantity(seconds, spread),
            tokens=Quantity(10.0),
            disk=Quantity(100.0),
            cpus=cpus,
            gpus=0,
            basis="prior",
        )
        for name, seconds, _ in jobs
    }
    return document, estimates


def wall(cores: int, *jobs: Job, **more: Any) -> float:
    return summarise(*plan(*jobs, **more), Place(cores=cores)).wall.median


def test_independent_jobs_share_the_cores() -> None:
    jobs = [(f"j{n}", 10.0, ()) for n in range(4)]
    assert wall(1, *jobs) == pytest.approx(40)
    assert wall(2, *jobs) == pytest.approx(20)
    assert wall(9, *jobs) == pytest.approx(10)
    assert wall(3, *jobs, cpus=2) == pytest.approx(40)


def test_gpus_are_shared_as_cores_are() -> None:
    document, estimates = plan(*((f"j{n}", 10.0, ()) for n in range(4)))
    estimates = {name: replace(each, gpus=4) for name, each in estimates.items()}

    def took(gpus: int | None) -> float:
        return summarise(document, estimates, Place(cores=64, gpus=gpus)).wall.median

    assert took(8) == pytest.approx(20)
    assert took(4) == pytest.approx(40)
    assert took(1) == pytest.approx(40), "each takes all that there are"
    assert took(None) == pytest.approx(10), "as many as the jobs ask for"


def test_the_idle_machine_comes_first_and_the_load_after_it() -> None:
    document, estimates = plan(("a", 100.0, ()), ("b", 100.0, ("a",)))
    loaded = summarise(document, estimates, Place(cores=2, slowdown=4.0))
    first, second = summary_lines(loaded)
    assert first == "about 3.3 min on an idle machine; about 13 min at the current load"
    assert second == "with -j 2, 20 tokens, 200 B of disk"
    idle = summarise(document, estimates, Place(cores=2))
    assert summary_lines(idle) == ["about 3.3 min on an idle machine", second]
    assert (loaded.wall, loaded.work) == (idle.wall, idle.work)


def test_the_load_of_this_machine_does_not_slow_gpus() -> None:
    document, estimates = plan(("a", 100.0, ()), ("b", 100.0, ("a",)))
    estimates["b"] = replace(estimates["b"], gpus=4, card="a100")
    summary = summarise(document, estimates, Place(cores=2, slowdown=4.0))
    assert summary.wall.median == pytest.approx(200)
    assert summary.loaded == pytest.approx(500)
    assert summary_lines(summary)[0].startswith("about 3.3 min on an idle machine with 4 x a100; ")


def test_checkpoints_are_in_the_disk() -> None:
    document, estimates = plan(("a", 1.0, ()), ("b", 1.0, ()))
    estimates = {name: replace(each, checkpoints=1e9) for name, each in estimates.items()}
    summary = summarise(document, estimates, Place(cores=2))
    assert summary.disk.median == pytest.approx(1e9 + 200), "of the largest training"
    text = cost_table(estimates, summary)
    assert "1.0 GB of it checkpoints of a" in text
    assert " to " not in text.replace("p10 to p90", ""), "no band whose ends are written alike"


def test_a_chain_takes_as_long_as_its_links() -> None:
    jobs: list[Job] = [("a", 5, ()), ("b", 7, ("a",)), ("c", 1, ("b",)), ("d", 9, ("a",))]
    summary = summarise(*plan(*jobs), Place(cores=8))
    assert summary.wall.median == pytest.approx(14)
    assert summary.path == ("a", "d")
    assert summary.path_seconds == pytest.approx(14)


def test_of_chains_that_are_equally_long_the_first_of_the_plan_is_named() -> None:
    """Names are hashed anew in each process, so that any of them came out."""
    jobs: list[Job] = [(f"j{n}", 5, ()) for n in range(40)]
    summary = summarise(*plan(*jobs, ("last", 1, [name for name, *_ in jobs])), Place(cores=8))
    assert summary.path == ("j0", "last")


def test_members_of_a_session_run_side_by_side() -> None:
    jobs: list[Job] = [("a", 5, ()), ("b", 7, ()), ("c", 1, ("a", "b"))]
    assert wall(1, *jobs) == pytest.approx(13)
    assert wall(1, *jobs, sessions=[("a", "b")]) == pytest.approx(8)


def test_a_job_that_asks_for_more_cores_than_there_are_still_runs() -> None:
    assert wall(2, ("a", 5.0, ()), ("b", 5.0, ()), cpus=16) == pytest.approx(10)


def test_one_result_of_two_stages_costs_once() -> None:
    document, estimates = plan(("a", 5.0, ()))
    document["jobs"].append({**document["jobs"][0], "id": "again", "stage": "again"})
    estimates["again"] = estimates["a"]
    assert summarise(document, estimates, Place(cores=4)).work.median == pytest.approx(5)


def test_errors_partly_cancel_in_a_sum() -> None:
    jobs = [(f"j{n}", 10.0, ()) for n in range(30)]
    band = summarise(*plan(*jobs, spread=0.8), Place(cores=4)).work
    single = Quantity(1.0, 0.8)
    assert band.low < 300 < band.high
    assert band.high / band.median < single.high / single.median


def test_the_same_numbers_each_time() -> None:
    jobs = [(f"j{n}", 10.0, ()) for n in range(5)]
    first, second = (summarise(*plan(*jobs, spread=0.5), Place(cores=2)) for _ in range(2))
    assert first == second


def test_nothing_left() -> None:
    document, _ = plan(("a", 5.0, ()))
    summary = summarise(document, {}, Place(cores=2))
    assert (summary.jobs, summary.wall.high) == (0, 0.0)
    assert "nothing is left to run" in cost_table({}, summary)


def test_many_rounds_are_shown_as_one_row() -> None:
    jobs = [(f"eto.{n}.{s}", 2.0, ()) for n in range(60) for s in ("explore", "dpo")]
    document, estimates = plan(*jobs)
    text = cost_table(estimates, summarise(document, estimates, Place(cores=2)))
    assert "eto.*.explore" in text
    assert len(text.splitlines()) < 15
    whole = cost_table(estimates, summarise(document, estimates, Place(cores=2)), everything=True)
    assert "eto.59.dpo" in whole


def test_cells_of_a_sweep_are_shown_as_one_row() -> None:
    jobs = [(f"sft@model=m{n},seed=0", 2.0, ()) for n in range(60)]
    document, estimates = plan(*jobs)
    text = cost_table(estimates, summarise(document, estimates, Place(cores=2)))
    assert text.splitlines()[1].startswith("sft@*")


def test_two_cells_are_one_row() -> None:
    def stages(cells: int) -> list[str]:
        jobs = [(f"eto.1.dpo@beta=0.5,seed={n}", 2.0, ()) for n in range(cells)]
        document, estimates = plan(*jobs)
        text = cost_table(estimates, summarise(document, estimates, Place(cores=2)))
        return [line.split()[0] for line in text.partition("\n\n")[0].splitlines()[1:]]

    assert stages(3) == ["eto.1.dpo@*"]
    assert stages(2) == ["eto.1.dpo@*"]
    assert stages(1) == ["eto.1.dpo@beta=0.5,seed=0"]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_table_fits_the_terminal(width: int) -> None:
    jobs = [(f"evaluate_of_a_long_name_{n}", 7200.0, ()) for n in range(3)]
    document, estimates = plan(*jobs, spread=0.4)
    told = dict.fromkeys(estimates, "43 of 80 GB of each GPU")
    summary = summarise(document, estimates, Place(cores=2))
    text = cost_table(estimates, summary, memory=told, width=width)
    assert max(map(len, text.splitlines())) <= width, text
    for words in ("evaluate_of_a_long_name_0", "2.0 h", "43 of 80 GB of each GPU", "wall time"):
        assert words in text
    assert "based on" in cost_table(estimates, summary, memory=told)


@pytest.mark.parametrize(
    ("show", "number", "text"),
    [
        (format_duration, 0.25, "0.2 s"),
        (format_duration, 99, "99 s"),
        (format_duration, 150, "2.5 min"),
        (format_duration, 7200, "2.0 h"),
        (format_duration, 86400 * 12, "12 days"),
        (format_count, 850, "850"),
        (format_count, 12_400, "12k"),
        (format_count, 999_700, "1.0M"),
        (format_size, 0, "0 B"),
        (format_size, 3.4e9, "3.4 GB"),
        (format_size, 2e13, "20 TB"),
    ],
)
def test_amounts_for_people(show: Callable[[float], str], number: float, text: str) -> None:
    assert show(number) == text
