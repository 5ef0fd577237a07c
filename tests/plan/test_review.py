"""What `plan` and `why` say about a job: marks, causes, and the folding of long plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toy_plan import job, plan

from agentc.plan.job import Job, Plan
from agentc.plan.render import plan_document
from agentc.plan.review import Review, change_lines, review_plan
from agentc.plan.tree import plan_text
from agentc.plan.work import find_work
from agentc.runtime.store.layout import StoreLayout


def chain(**settings: Any) -> Plan:
    return plan(
        job("data", "expert"),
        job("sft", "sft", data=["data"], settings=settings),
        job("dpo", "dpo", model=["sft"]),
        job("scores", "evaluate", served="dpo"),
    )


def reviewed(store: Path, after: Plan, before: Plan | None, *present: str) -> Review:
    layout = StoreLayout(store)
    for name in present:
        manifest = layout.manifest(after.by_id()[name].object)
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.touch()
    document = None if before is None else plan_document(before)
    return review_plan(find_work(plan_document(after), layout), document)


def marks(review: Review) -> str:
    return "".join(item.mark for item in review.items)


def test_marks(tmp_path: Path) -> None:
    old, new = chain(lr=1), chain(lr=2)
    assert marks(reviewed(tmp_path / "1", old, None)) == "++++"
    assert marks(reviewed(tmp_path / "2", old, old)) == ">>>>", "the last run made nothing"
    assert marks(reviewed(tmp_path / "3", new, old, "data")) == "=~~~"
    assert marks(reviewed(tmp_path / "4", new, old, "dpo")) == "··=~"
    assert marks(reviewed(tmp_path / "5", new, old, "scores")) == "···="
    longer = plan(*chain(lr=1).jobs, job("extra", "sft", data=["data"]))
    assert marks(reviewed(tmp_path / "6", longer, old, "data", "sft")) == "==>>+"


def test_the_text_names_each_change_once_and_who_follows(tmp_path: Path) -> None:
    text = plan_text(reviewed(tmp_path, chain(lr=2), chain(lr=1), "data"))
    assert text.count("lr: 1 -> 2") == 1
    assert "(2 other jobs because of it)" in text
    assert text.count("because of sft") == 2
    assert "toy: 4 stages, 4 jobs: 3 to run, 1 in the store" in text
    assert "1 changed, 2 follow from that" in text


def test_a_renamed_stage_is_the_same_work(tmp_path: Path) -> None:
    old = plan(job("data", "expert", settings={}), job("sft", "sft", data=["data"], settings={}))
    new = plan(job("gold", "expert", settings={}), job("sft", "sft", data=["gold"], settings={}))
    review = reviewed(tmp_path, new, old, "gold", "sft")
    assert review.gone == ()
    assert review.items[0].diff is not None
    assert review.items[0].diff.was == "data"
    assert "was called data" in plan_text(review)


def test_a_renamed_input_is_no_change_of_wiring(tmp_path: Path) -> None:
    old = plan(job("data", settings={}), job("sft", data=["data"], settings={"lr": 1}))
    new = plan(job("gold", settings={}), job("sft", data=["gold"], settings={"lr": 2}))
    review = reviewed(tmp_path, new, old)
    assert change_lines(review.items[1], review.diffs) == ["lr: 1 -> 2"]


def test_inputs_that_came_or_went_share_a_line(tmp_path: Path) -> None:
    jobs = [job(name, "sft") for name in "abc"]
    few = plan(jobs[0], job("report", "report", a=["a"]))
    many = plan(*jobs, job("report", "report", a=["a"], b=["b"], c=["c"]))
    assert "inputs: +b, +c" in plan_text(reviewed(tmp_path / "came", many, few))
    assert "inputs: -b, -c" in plan_text(reviewed(tmp_path / "went", few, many))


def test_an_expert_for_each_seed_is_noted(tmp_path: Path) -> None:
    def swept(**other: int) -> str:
        cells = [
            job("expert@seed=0", "expert", settings={"seed": 0}),
            job("expert@seed=1", "expert", settings={"seed": 1, **other}),
            job("sft@seed=0", settings={"seed": 0}),
            job("sft@seed=1", settings={"seed": 1}),
        ]
        return plan_text(reviewed(tmp_path, plan(*cells), None))

    assert swept().count("differs between cells by `seed` only") == 1
    assert "note: expert differs between cells by `seed` only" in swept()
    assert "by `seed` only" not in swept(limit=3)


def test_equal_work_is_shown_once_as_work(tmp_path: Path) -> None:
    made = plan(job("a", settings={"lr": 1}), job("b", settings={"lr": 1}))
    text = plan_text(reviewed(tmp_path, made, None))
    assert "2 jobs, 1 of them the same work as others: 1 to run" in text
    assert "same work as a" in text


def rounds(count: int, **odd: int) -> Plan:
    """Rounds of two jobs; `odd` sets lr of some round (`r7=3`)."""
    jobs: list[Job] = [job("base", "model")]
    before = "base"
    for number in range(1, count + 1):
        lr = odd.get(f"r{number}", 1)
        policy = f"eto.{number}.dpo"
        jobs.append(job(f"eto.{number}.explore", "rollout", served=before, round=number))
        pairs = [f"eto.{number}.explore"]
        jobs.append(job(policy, "dpo", data=pairs, settings={"lr": lr}, round=number))
        before = policy
    return plan(*jobs)


def test_rounds_that_repeat_are_folded(tmp_path: Path) -> None:
    text = plan_text(reviewed(tmp_path, rounds(5000), None))
    assert len(text.splitlines()) < 20
    assert "10001 jobs" in text
    assert "eto, rounds 2 to 5000: the same 4999 times, 9998 to run" in text
    every = plan_text(reviewed(tmp_path, rounds(50), None), every=True)
    assert every.count("to run") == 1 + 101


def test_a_round_that_differs_is_not_hidden(tmp_path: Path) -> None:
    before, after = rounds(40), rounds(40, r30=7)
    text = plan_text(reviewed(tmp_path, after, before))
    assert "lr: 1 -> 7" in text
    assert "eto.30.dpo" in text
    assert len(text.splitlines()) < 30


def test_a_long_text_without_a_pattern_is_cut(tmp_path: Path) -> None:
    made = plan(*(job(f"job{n}", settings={"n": n}) for n in range(500)))
    lines = plan_text(reviewed(tmp_path, made, None)).splitlines()
    assert len(lines) < 120
    assert lines[-1].strip() == "and 400 more lines; --all shows them"


def test_a_round_that_nobody_needs_is_one_line(tmp_path: Path) -> None:
    """Its stages are not there, and what is made of them is."""
    jobs = [job("base", "model")]
    for number in (1, 2):
        before = "base" if number == 1 else "eto.1.s4"
        for stage in range(5):
            name = f"eto.{number}.s{stage}"
            jobs.append(job(name, model=[before], settings={"n": number}, round=number))
            before = name
    text = plan_text(reviewed(tmp_path, plan(*jobs), None, "eto.1.s4"))
    assert "  · 4 not needed: " in text
    assert "eto.2.s4" in text, "the round after it runs"
    needless = plan(*jobs, job("scores", "evaluate", served="eto.2.s4"), job("other", "sft"))
    lines = plan_text(reviewed(tmp_path / "2", needless, None, "scores")).splitlines()
    assert "  · 5 not needed: eto, round 1" in lines
    assert "  · 5 not needed: eto, round 2" in lines


@pytest.mark.parametrize("full", [False, True])
def test_what_is_there_is_one_line(tmp_path: Path, full: bool) -> None:
    made = rounds(40)
    review = reviewed(tmp_path, made, made, *(one.id for one in made.jobs))
    text = plan_text(review, full=full)
    assert "nothing to run, 81 in the store" in text
    assert (len(text.splitlines()) < 6) is not full


def sweep(*seeds: int, count: int = 2) -> Plan:
    """What all cells share, cells with rounds, and a table over all of them; cells interleaved."""
    jobs = [job("data", "expert")]
    for seed in seeds:
        jobs.append(job(f"sft@seed={seed}", "sft", data=["data"], settings={"seed": seed}))
    for number in range(1, count + 1):
        for seed in seeds:
            before = f"sft@seed={seed}" if number == 1 else f"eto.{number - 1}.dpo@seed={seed}"
            settings = {"seed": seed, "number": number}
            name = f"eto.{number}.dpo@seed={seed}"
            jobs.append(job(name, "dpo", model=[before], settings=settings, round=number))
    jobs.append(job("table", "compare", of=[f"eto.{count}.dpo@seed={seed}" for seed in seeds]))
    return plan(*jobs)


def test_a_sweep_is_listed_cell_by_cell(tmp_path: Path) -> None:
    review = reviewed(tmp_path, sweep(0, 1), None)
    text = plan_text(review, every=True)
    names = [word for line in text.splitlines() for word in line.split()[1:2] if "+ " in line]
    assert names == [
        "data",
        *("sft@seed=0", "eto.1.dpo@seed=0", "eto.2.dpo@seed=0"),
        *("sft@seed=1", "eto.1.dpo@seed=1", "eto.2.dpo@seed=1"),
        "table",
    ]
    assert "seed=1: eto, round 2" in text
    assert "seed=1: the same, 3 to run" in plan_text(review), "two cells are folded like ten"


def test_cells_with_the_same_work_are_folded(tmp_path: Path) -> None:
    """A model of the hub is in every cell, and is obtained once."""
    jobs = []
    for seed in range(3):
        jobs.append(job(f"base@seed={seed}", "model", settings={}))
        name, settings = f"sft@seed={seed}", {"seed": seed}
        jobs.append(job(name, "sft", model=[f"base@seed={seed}"], settings=settings))
    lines = plan_text(reviewed(tmp_path, plan(*jobs), None)).splitlines()
    assert "+ base@seed=0" in "\n".join(lines)
    folded = "seed=1 to seed=2: the same 2 times, 2 the same work as others, 2 to run"
    assert lines[-1].strip() == folded


def test_the_state_goes_below_where_the_cost_would_not_fit(tmp_path: Path) -> None:
    """The marks say it in short; equal work is named, and costs once."""
    long = "evaluate_without_hidden_states"
    twins = plan(job("score", settings={}), job(long, settings={}), job("sft", data=[long]))
    review = reviewed(tmp_path, twins, None)
    costs = {item.id: "about 41 min, 12 GPU-h" for item in review.items}
    wide = plan_text(review, costs=costs).splitlines()
    assert len([line for line in wide if "about 41 min" in line]) == 2
    lines = plan_text(review, costs=costs, width=62).splitlines()
    assert max(map(len, lines)) <= 62
    at = lines.index(f"  = {long}")
    assert lines[at + 1] == "      same work as score"
    assert any(line.startswith("  + sft") and line.endswith("12 GPU-h") for line in lines)


def test_cells_that_repeat_are_folded(tmp_path: Path) -> None:
    text = plan_text(reviewed(tmp_path, sweep(*range(30), count=20), None))
    assert "seed=1 to seed=29: the same 29 times, 609 to run" in text
    assert "seed=0: eto, rounds 2 to 20: the same 19 times, 19 to run" in text
    assert len(text.splitlines()) < 12


def test_a_sweep_takes_over_what_a_single_run_made(tmp_path: Path) -> None:
    single = plan(job("data", "expert"), job("sft", "sft", data=["data"], settings={"seed": 0}))
    made = sweep(0, 1)
    review = reviewed(tmp_path, made, single, "data", "sft@seed=0")
    assert review.gone == ()
    kept = next(line for line in plan_text(review).splitlines() if "sft@seed=0 " in line)
    assert "in the store" in kept
    assert "was called sft" in kept


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_plan_fits_the_terminal(tmp_path: Path, width: int) -> None:
    new, old = chain(lr=2, notes="a long text of a setting " * 6), chain(lr=1)
    review = reviewed(tmp_path, new, old, "data")
    costs = {item.id: "about 41 min, 12 GPU-h" for item in review.items}
    text = plan_text(review, costs=costs, width=width)
    assert max(map(len, text.splitlines())) <= width, text
    for words in ("~ sft", "about 41 min, 12 GPU-h", "because of sft", "lr: 1 -> 2"):
        assert words in text
    assert max(map(len, plan_text(review, costs=costs).splitlines())) > 100, "a file has all"


def test_notes_that_do_not_fit_stand_below_their_rows(tmp_path: Path) -> None:
    review = reviewed(tmp_path, chain(lr=2), chain(lr=1), "data")
    costs = {item.id: "about 41 min, 12 GPU-h" for item in review.items}
    lines = plan_text(review, costs=costs, width=50).splitlines()
    at = next(n for n, line in enumerate(lines) if line.lstrip().startswith("~ dpo"))
    assert lines[at + 1] == "      because of sft"
