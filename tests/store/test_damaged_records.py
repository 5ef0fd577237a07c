"""What is kept of runs, cut off, damaged or unreadable: it is named, and no results go with it.

Neighbour: `test_variants.py`, where all of it is whole.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from variant_runs import plan_text, run_once, store_says

from agentc.cli import main
from agentc.plan.work import find_work
from agentc.run.past import keep_plan
from agentc.runtime.store.layout import StoreLayout
from agentc.store import gc
from agentc.store.gc import collect, find_garbage
from agentc.store.paths import RunFolder
from agentc.store.run_history import read_history


def test_a_history_that_was_cut_off_costs_one_line(layout: StoreLayout) -> None:
    folder = RunFolder.of(layout, "quick")
    run_once(layout, plan_text("quick", None, 0, 0))
    with folder.history.open("a") as out:
        out.write('{"began": 1.0, "compl')
    run_once(layout, plan_text("quick", None, 0, 1))
    assert [line["complete"] for line in read_history(folder)] == [True, True]


def test_a_history_cut_off_within_a_character_costs_one_line(layout: StoreLayout) -> None:
    """And a line ends with a newline alone: other ends of lines may stand in a name."""
    folder = RunFolder.of(layout, "quick")
    run_once(layout, plan_text("quick", None, 0, 0).replace("s.yaml", "s\\u2028.yaml"))
    with folder.history.open("ab") as out:
        out.write('{"spec": "é'.encode()[:-1])
    run_once(layout, plan_text("quick", None, 0, 1))
    assert [line["complete"] for line in read_history(folder)] == [True, True]


def test_a_damaged_line_of_a_history_is_named_and_takes_nothing_with_it(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was all that said of an earlier plan that it was complete."""
    folder = RunFolder.of(layout, "quick")
    whole = plan_text("quick", None, 0, 0)
    run_once(layout, whole)
    for edition in (1, 2):
        run_once(layout, plan_text("quick", None, 0, edition), until="j0")
    first, *rest = folder.history.read_text().splitlines(keepends=True)
    folder.history.write_text("".join([first.replace(":", ";"), *rest]))
    named = {f"rollout/{job['key']}" for job in json.loads(whole)["jobs"]}
    assert named.isdisjoint(find_garbage(layout).objects)
    for verb in (["status", "--all-runs"], ["status", "quick"], ["store", "gc"]):
        assert main([*verb, "--store", str(layout.root)]) in (0, 3)
        assert f"warning: {folder.history}:1: " in capsys.readouterr().err


def test_a_run_begins_over_a_last_plan_that_is_no_text(layout: StoreLayout) -> None:
    text = plan_text("quick", None, 0, 0)
    run_once(layout, text)
    last = RunFolder.of(layout, "quick").last_plan
    last.write_bytes(b"\xff" + text.encode()[1:])
    run_once(layout, text)
    assert last.read_text() == text


@pytest.mark.parametrize("word", ["[]", '{"slurm": [1]}'])
def test_a_word_of_a_run_that_is_no_record_stops_gc_and_no_run(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    text = plan_text("quick", None, 0, 0)
    run_once(layout, text)
    said = RunFolder.of(layout, "quick").in_use / "a.json"
    said.write_text(word)
    run_once(layout, text)
    assert f"{said} cannot be read" in store_says(capsys, layout, "store", "gc")


def test_a_list_of_runs_at_work_that_cannot_be_read_is_no_empty_one(
    layout: StoreLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their objects would go."""
    run_once(layout, plan_text("quick", None, 0, 0))
    folder = RunFolder.of(layout, "quick").in_use

    def refuse(listing: Callable[..., Any], path: Any = ".") -> Any:
        if str(path) == str(folder):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listing(path)

    for name in ("scandir", "listdir"):
        monkeypatch.setattr(os, name, partial(refuse, getattr(os, name)))
    with pytest.raises(ValueError, match="in-use cannot be read"):
        find_garbage(layout)


def test_a_packed_plan_that_is_damaged_is_named(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str]
) -> None:
    text = plan_text("quick", None, 0, 0)
    run_once(layout, text)
    kept = RunFolder.of(layout, "quick").stored_plan(keep_plan(RunFolder.of(layout, "quick"), text))
    kept.write_bytes(kept.read_bytes()[:10] + b"\xff" * 40)
    assert f"{kept} cannot be read" in store_says(capsys, layout, "store", "gc")
    assert "cannot be read" in store_says(capsys, layout, "diff", "quick@1", "quick")


def test_what_was_put_aside_comes_back_when_nobody_can_tell_who_needs_it(
    layout: StoreLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a file of a run that has just begun is stale on this node."""
    for edition in (0, 1):
        run_once(layout, plan_text("quick", None, 0, edition))
    garbage = find_garbage(layout)
    assert garbage.objects

    def fail(*_: Any) -> None:
        raise ValueError("a plan cannot be read")

    monkeypatch.setattr(gc, "find_roots", fail)
    with pytest.raises(ValueError, match="cannot be read"):
        collect(layout, garbage)
    assert all(map(layout.is_published, garbage.objects))


@pytest.mark.parametrize("harm", ["cut off", "lost"])
def test_a_run_whose_last_plan_is_damaged_is_named_and_loses_nothing(
    layout: StoreLayout, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    """Else nobody would know of it, and its complete results would be garbage."""
    text = plan_text("quick", None, 0, 0)
    run_once(layout, text)
    run_once(layout, plan_text("other", None, 0, 0))
    last = RunFolder.of(layout, "quick").last_plan
    if harm == "lost":
        last.unlink()
    else:
        last.write_text(text[:40])
    said = store_says(capsys, layout, "status", "--all-runs")
    assert f"quick is damaged: {last} cannot be read" in said
    assert "other" in said
    assert f"{last} cannot be read" in store_says(capsys, layout, "status", "quick")
    assert "nothing was deleted" in store_says(capsys, layout, "store", "gc", "--delete")
    assert find_work(json.loads(text), layout).missing == ()
    assert "quick: forgotten" in store_says(capsys, layout, "status", "--forget", "quick")
    assert find_garbage(layout).objects, "it is known by the record alone"
    assert "damaged" not in store_says(capsys, layout, "status", "--all-runs")


def test_running_it_again_mends_a_lost_last_plan(layout: StoreLayout) -> None:
    text = plan_text("quick", None, 0, 0)
    run_once(layout, text)
    RunFolder.of(layout, "quick").last_plan.unlink()
    run_once(layout, plan_text("quick", None, 0, 1))
    kept = set(find_work(json.loads(text), layout).wanted)
    assert not kept & set(find_garbage(layout, keep_runs=2).objects)
