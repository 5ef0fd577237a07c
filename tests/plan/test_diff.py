"""Comparing two plans: what changed in a job, and where what it inherits comes from."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from toy_plan import job, plan

from agentc.plan.diff import Change, change_texts, compare_plans, explain_root
from agentc.plan.job import Plan, SoftwareLock
from agentc.plan.render import plan_document
from agentc.plan.review import change_lines, review_plan
from agentc.plan.work import find_work
from agentc.runtime.store.layout import StoreLayout


def chain(beta: float = 0.1, version: int = 1, lock: str = "a==1\n", **more: Any) -> Plan:
    """data -> sft -> dpo -> scores, and a side branch that reads data alone."""
    return plan(
        job("data", "expert"),
        job("sft", "sft", data=["data"], version=version),
        job("dpo", "dpo", model=["sft"], settings={"beta": beta, **more}),
        job("scores", "evaluate", served="dpo"),
        job("side", "sft", data=["data"]),
        lock=SoftwareLock(name="empty", lock=lock),
    )


def differences(before: Plan | None, after: Plan) -> dict[str, Any]:
    document = None if before is None else plan_document(before)
    return compare_plans(document, plan_document(after))


def test_nothing_changed() -> None:
    assert {d.novelty for d in differences(chain(), chain()).values()} == {"same"}


def test_a_setting_changes_its_job_and_what_follows() -> None:
    found = differences(chain(), chain(beta=0.5))
    assert [d.id for d in found.values() if d.novelty == "changed"] == ["dpo", "scores"]
    assert found["dpo"].changes == (Change(path="settings.beta", before=0.1, after=0.5),)
    assert found["dpo"].changes[0].text() == "beta: 0.1 -> 0.5"
    assert found["dpo"].roots == ("dpo",)
    assert found["scores"].changes == ()
    assert found["scores"].upstream == ("dpo",)
    assert found["scores"].roots == ("dpo",)
    assert explain_root(found, "dpo") == "dpo (beta: 0.1 -> 0.5)"


def test_two_causes_are_both_named() -> None:
    found = differences(chain(), chain(beta=0.5, version=2))
    assert found["scores"].roots == ("dpo", "sft")
    assert found["dpo"].upstream == ("sft",)
    assert [c.text() for c in found["sft"].changes] == ["version: 1 -> 2"]


def test_a_long_chain_of_changes_stays_small() -> None:
    """3,000 jobs, each changed itself: four and a half million pairs of a job and a cause."""

    def stages(lr: float) -> Plan:
        names = [f"s{n}" for n in range(3000)]
        first = job(names[0], "sft", settings={"lr": lr})
        pairs = zip(names[1:], names, strict=False)
        return plan(first, *(job(n, "sft", settings={"lr": lr}, model=[p]) for n, p in pairs))

    before, after = plan_document(stages(0.1)), plan_document(stages(0.2))
    tracemalloc.start()
    found = compare_plans(before, after)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6
    assert found["s2999"].root_count == 3000
    assert found["s2999"].nearest_roots(2) == ["s2999", "s2998"]
    review = review_plan(find_work(after, StoreLayout("/nonexistent")), before)
    assert change_lines(review.items[9], review.diffs) == [
        "lr: 0.1 -> 0.2",
        "because of s8 (lr: 0.1 -> 0.2); s7 (lr: 0.1 -> 0.2); s6 (lr: 0.1 -> 0.2); and 6 more",
    ]


def test_a_setting_back_to_its_default() -> None:
    found = differences(chain(loss="ipo"), chain())
    assert [c.text() for c in found["dpo"].changes] == ["loss: ipo -> sigmoid (default)"]


def test_another_lock_changes_every_job() -> None:
    found = differences(chain(), chain(lock="a==2\n"))
    assert {d.novelty for d in found.values()} == {"changed"}
    assert [c.text() for c in found["side"].changes] == ["software: other versions of packages"]


def test_new_and_gone_jobs() -> None:
    before = plan(job("data", "expert"), job("old", "sft", data=["data"]))
    after = plan(job("data", "expert"), job("new", "sft", data=["data"]))
    found = differences(before, after)
    assert {name: d.novelty for name, d in found.items()} == {
        "data": "same",
        "new": "new",
        "old": "gone",
    }


def test_an_input_taken_from_another_job() -> None:
    jobs = [job("a", "expert"), job("b", "expert")]
    found = differences(
        plan(*jobs, job("sft", data=["a"], settings={})),
        plan(*jobs, job("sft", data=["b"], settings={})),
    )
    assert [c.text() for c in found["sft"].changes] == ["input data: a -> b"]
    assert found["sft"].roots == ("sft",)


def test_without_an_earlier_plan_everything_is_new() -> None:
    assert {d.novelty for d in differences(None, chain()).values()} == {"new"}


def test_a_value_cannot_steer_a_terminal() -> None:
    change = Change(path="settings.x", before="a", after="b\x1b[31mc\x07")
    assert change.text() == "x: a -> b?[31mc?"


def test_two_long_values_are_shown_from_where_they_part() -> None:
    change = Change(path="settings.x", before="same " * 40 + "old", after="same " * 40 + "new")
    assert change.text().endswith("same new")
    assert "same old -> " in change.text()


def test_long_values_are_cut() -> None:
    change = Change(path="facts.prompt.instruction", before="a\n" * 100, after="b")
    assert len(change.text()) < 120
    assert "200 characters" not in change.text()
    assert change.text().startswith("prompt.instruction: a a a")


def test_lists_of_mappings_say_what_differs_inside() -> None:
    """Two claims that begin alike for 400 characters, as `agentc diff` of two sweeps has them."""

    def claim(*runs: str) -> Any:
        return [{"name": "gain", "what": "x" * 400, "runs": list(runs), "gate": True}]

    change = Change(path="settings.claims", before=claim("a@seed=0"), after=claim("a@seed=1"))
    assert change.text() == "claims: [0].runs: a@seed=0 -> a@seed=1"
    grown = Change(path="settings.claims", before=claim("a"), after=[*claim("a"), *claim("b")])
    assert "+{name: gain, what: xxx" in grown.text()
    assert "'" not in grown.text(), "no Python in a message"
    nested = Change(path="facts.runs", before=[["a", True]], after=[["b", None]])
    assert nested.text() == "runs: [a, true] -> [b, null]"


@pytest.mark.parametrize(
    "path",
    [
        "facts.files.lengths.py",
        "facts.code.vault.py",
        "environment server.code.vault.py",
        "policy server.facts.files.lengths.py",
    ],
)
def test_a_file_that_changed_is_named(path: str) -> None:
    name = ".".join(path.split(".")[-2:])
    for before, after, words in (
        ("4fda", "ef7f", "changed"), (None, "ef7f", "is new"), ("4fda", None, "is gone"),
    ):  # fmt: skip
        assert Change(path=path, before=before, after=after).text() == f"{name} {words}"
    assert "->" in Change(path="settings.files.x", before="a", after="b").text()


@pytest.mark.parametrize("most", [2, 5, 7])
def test_of_many_changes_those_that_are_left_out_are_counted(most: int) -> None:
    settings = {f"k{number}": 1 for number in range(8)}
    after = dict.fromkeys(settings, 2)
    changes = differences(chain(**settings), chain(**after))["dpo"].changes
    texts = change_texts(changes, most)
    assert len(texts) == most
    *shown, last = texts
    assert last == f"and {8 - len(shown)} more changes"
    assert change_texts(changes, 8) == change_texts(changes)
    assert len(change_texts(changes)) == 8
