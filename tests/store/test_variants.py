"""Results belong to what made them: to the name, the scale and the params of a run.

Neighbours: `test_lost_results.py`, `test_damaged_records.py`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from variant_runs import plan_text, publish, run_once, store_says

from agentc.run.past import keep_plan
from agentc.runtime.store.layout import StoreLayout
from agentc.store import gc
from agentc.store.gc import find_garbage
from agentc.store.paths import RunFolder, Variant
from agentc.store.run_history import plan_in_use


def test_a_smoke_run_and_a_seed_leave_the_full_run_alone(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    run_once(layout, plan_text("quick", None, 0, 0))
    run_once(layout, plan_text("quick", "smoke", 0, 0), until="j0")
    run_once(layout, plan_text("quick", None, 1, 0))
    assert not find_garbage(layout)
    assert "nothing to delete" in store_says(capsys, layout, "store", "gc")
    folders = sorted(path.name for path in (layout.root / "runs").iterdir())
    assert folders == ["quick", "quick@seed=1", "quick@smoke"]


def test_the_last_complete_plan_stays_until_another_is(layout: StoreLayout) -> None:
    first, second = plan_text("quick", None, 0, 0), plan_text("quick", None, 0, 1)
    run_once(layout, first)
    run_once(layout, second, until="j1")
    assert not find_garbage(layout)
    run_once(layout, second, code=3)
    assert not find_garbage(layout)
    run_once(layout, second)
    old = {f"rollout/{job['key']}" for job in json.loads(first)["jobs"]}
    new = {f"rollout/{job['key']}" for job in json.loads(second)["jobs"]}
    assert set(find_garbage(layout).objects) == old - new
    assert not find_garbage(layout, keep_runs=2)


def test_gc_says_whose_objects_go_and_which_report_shows_them(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = plan_text("quick", "smoke", 0, 0), plan_text("quick", "smoke", 0, 1)
    run_once(layout, first)
    run_once(layout, second)
    gone = f"rollout/{json.loads(first)['jobs'][3]['key']}"
    folder = RunFolder.of(layout, "quick@smoke")
    folder.report.write_text("<p>of the first</p>")
    folder.report_source.write_text(json.dumps({"object": gone}))
    said = store_says(capsys, layout, "store", "gc")
    assert "quick@smoke, of earlier plans: 3 objects" in said
    assert f"j3  {gone}" in said
    assert f"a report stays without its results: {folder.report}" in said
    assert "nothing to delete" in store_says(capsys, layout, "store", "gc", "--older-than", "30d")
    for path in layout.object(gone), layout.object(gone) / "artifact.json":
        os.utime(path, (1, 1))
    assert gone in store_says(capsys, layout, "store", "gc", "--older-than", "30d")
    assert layout.is_published(gone)
    store_says(capsys, layout, "store", "gc", "--delete")
    assert not layout.is_published(gone)


def test_records_of_an_older_release_are_roots_still(layout: StoreLayout) -> None:
    """All that had one name lay in one folder, and the history did not say what was complete."""
    full, smoke = plan_text("quick", None, 0, 0), plan_text("quick", "smoke", 0, 0)
    seed = plan_text("quick", None, 1, 0).replace('"chosen": {"seed": 1}', '"unknown": 0')
    folder = RunFolder.of(layout, "quick")
    for text in (full, seed, smoke):
        digest = keep_plan(folder, text)
        with folder.history.open("a") as out:
            out.write(json.dumps({"exit": 0, "plan": digest}) + "\n")
        for job in json.loads(text)["jobs"]:
            publish(layout, f"rollout/{job['key']}")
    folder.last_plan.write_text(smoke)
    assert not find_garbage(layout)
    run_once(layout, full)
    run_once(layout, plan_text("quick", "smoke", 0, 1))
    named = {f"rollout/{job['key']}" for text in (full, seed) for job in json.loads(text)["jobs"]}
    assert named.isdisjoint(find_garbage(layout).objects)


@pytest.mark.parametrize(
    ("variant", "label"),
    [
        (Variant(name="quick"), "quick"),
        (Variant(name="quick", scale="smoke"), "quick@smoke"),
        (Variant(name="quick", chosen={"seed": 1}), "quick@seed=1"),
        (Variant(name="quick", scale="smoke", chosen={"b": [1, 2], "a": 0.5}), None),
        (Variant(name="quick", chosen={"path": "../../etc"}), None),
        (Variant(name="quick", chosen={"text": "x" * 400}), None),
        (Variant(name="q" * 300), None),
        (Variant(name="quick", chosen={"a": "1,b=2"}), None),
    ],
)
def test_labels_are_folders_and_tell_variants_apart(variant: Variant, label: str | None) -> None:
    if label is not None:
        assert variant.label == label
    assert len(variant.label) < 200
    assert "/" not in variant.label
    other = Variant(name="quick", chosen={"a": 1, "b": 2})
    assert variant.label != other.label == "quick@a=1,b=2"


def test_runs_lists_and_names_choose(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, (scale, seed) in enumerate([(None, 0), (None, 1), ("smoke", 0)]):
        text = plan_text("quick", scale, seed, 0)
        run_once(layout, text, until="j0" if scale else None)
        folder = RunFolder.of_plan(layout, json.loads(text))
        os.utime(folder.state, (1000 + number, 1000 + number))
    listed = store_says(capsys, layout, "status", "--all-runs").splitlines()
    assert [line.split()[:2] for line in listed[1:]] == [
        ["quick@smoke", "unfinished"], ["quick@seed=1", "complete"], ["quick", "complete"]
    ]  # fmt: skip
    said = store_says(capsys, layout, "status", "quick")
    assert "quick@smoke: 1 of 4 jobs are done" in said
    assert "last as quick@smoke, which this is" in said
    assert "quick: 4 of 4" in store_says(capsys, layout, "status", "quick", "--scale", "full")
    said = store_says(capsys, layout, "status", "quick", "-p", "seed=1")
    assert said.startswith("quick@seed=1: 4 of 4")
    assert store_says(capsys, layout, "status", "quick@seed=1").startswith("quick@seed=1: 4 of 4")
    said = store_says(capsys, layout, "status", "quick", "--scale", "large")
    assert "no run of `quick` with --scale large; there are" in said
    assert "quick@seed=1: forgotten" in store_says(
        capsys, layout, "status", "--forget", "quick@seed=1"
    )
    assert find_garbage(layout).objects


def test_runs_that_another_node_has_just_begun_are_asked_for_anew(
    layout: StoreLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run of a variant makes a folder that this node need not know of yet."""
    run_once(layout, plan_text("quick", None, 0, 0))
    monkeypatch.setenv("AGENTC_VISIBLE_S", "60")
    asked: list[Path] = []
    monkeypatch.setattr(gc, "refresh", asked.append)
    find_garbage(layout)
    assert asked[:2] == [layout.root / "runs", layout.root / "runs" / "quick"]


def test_a_run_that_is_only_beginning_is_not_forgotten(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    """`gc` would know nothing of it any more."""
    text = plan_text("quick", None, 0, 0)
    run_once(layout, text)
    folder = RunFolder.of(layout, "quick")
    with plan_in_use(folder, keep_plan(folder, text)):
        assert "quick is running" in store_says(capsys, layout, "status", "--forget", "quick")
    assert folder.last_plan.is_file()
    assert "quick: forgotten" in store_says(capsys, layout, "status", "--forget", "quick")
