"""JVMs that stand still, fail or run out of memory: their episodes are void, and others go on. And
JVMs that are full, beside which another is started."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.backends.sciworld.test_sciworld_simulator import interpreter
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    path = os.pathsep.join(str(REPOSITORY / part) for part in ("compiler", "backends"))
    done = subprocess.run(
        [interpreter(), Path(__file__).with_name("standing_still.py")],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    value: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return value


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("still", "the simulator failed: it does not answer"),
        ("failing", "java.lang.NullPointerException"),
        ("full", "the simulator failed: 128 MB (`heap_mb`) are too little"),
    ],
)
def test_a_jvm_that_is_of_no_use_is_given_up_with_its_episodes(
    what: str, said: str, found: dict[str, Any]
) -> None:
    one = found[what]
    # Both episodes are void, and are played again in another JVM.
    assert said in one["told"][0]
    assert one["told"][1].startswith("the simulator failed")
    assert (one["ended"], one["replaced"]) == (True, True)
    assert all("This room is called" in seen or "outside" in seen for seen in one["seen"])
    assert len(set(one["seen"])) == 1


def test_where_all_jvms_are_full_another_is_started(found: dict[str, Any]) -> None:
    assert found["crowded"] == {
        "jvms": [1, 2, 2],
        "refusal": "all 2 places of the simulators are taken",
    }
