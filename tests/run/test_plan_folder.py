"""Folders of compiled plans: runs of one plan share, runs of different plans never do."""

from __future__ import annotations

import fcntl
import random
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentc.run.active_runs import claim_plan_folder
from agentc.runtime.store.layout import StoreLayout


@pytest.fixture
def layout(tmp_path: Path) -> StoreLayout:
    return StoreLayout(tmp_path / "store")


def test_shared_by_equal_plans_only(tmp_path: Path, layout: StoreLayout) -> None:
    with claim_plan_folder(layout, "exp", "one") as first:
        assert first == tmp_path / "plans" / "exp"
        with claim_plan_folder(layout, "exp", "one") as same:
            assert same == first
        with claim_plan_folder(layout, "exp", "two") as other:
            assert other.name.startswith("exp-")
            with claim_plan_folder(layout, "exp", "two") as other_again:
                assert other_again == other
    with claim_plan_folder(layout, "exp", "two") as later:
        assert later == first
    with (first / ".run.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_never_by_different_plans_however_they_meet(layout: StoreLayout) -> None:
    at_work: dict[Path, list[str]] = defaultdict(list)
    guard, wrong = threading.Lock(), []

    def runs(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(150):
            plan = chance.choice(["one", "two", "three"])
            with claim_plan_folder(layout, "exp", plan) as folder:
                with guard:
                    at_work[folder].append(plan)
                    if len(set(at_work[folder])) > 1:
                        wrong.append((folder.name, list(at_work[folder])))
                time.sleep(chance.choice([0, 0, 0.001]))
                with guard:
                    at_work[folder].remove(plan)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(runs, range(8)))
    assert wrong == []


def test_each_plan_has_its_own_where_nothing_can_be_locked(
    layout: StoreLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTC_FLOCK", "off")
    with claim_plan_folder(layout, "exp", "one") as first:
        with claim_plan_folder(layout, "exp", "two") as other:
            assert first.name.startswith("exp-")
            assert other.name.startswith("exp-")
            assert first != other
        with claim_plan_folder(layout, "exp", "one") as same:
            assert same == first
