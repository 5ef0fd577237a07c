"""Evaluations of real references against themselves, several at once; a thousand where tests are
long."""

from __future__ import annotations

import json
import os
import resource
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.sandbox.conftest import ROOT

from agentc.runtime.sandbox.boxes import CodeBox
from agentc_backends.environments.code_tests.calls import CallLimits, Namespace, NurseryPool
from agentc_backends.environments.code_tests.suite import CallSuite, suite_of, verdicts

pytestmark = pytest.mark.slow

_FILE = "data/colbench/backend_200.jsonl"
_LIMITS = CallLimits(seconds=5.0, wall_seconds=300.0)
_AT_ONCE = 2


@pytest.fixture(scope="module")
def rows() -> list[dict[str, object]]:
    file = Path(os.environ.get("AGENTC_SHARED", ROOT.parent / "shared")) / _FILE
    if not file.is_file():
        pytest.skip(f"no tasks at {file}; set AGENTC_SHARED")
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def suites(box: CodeBox, rows: list[dict[str, object]]) -> list[CallSuite]:
    return _suites(box, rows, "fresh")


@pytest.mark.parametrize(
    ("start", "times"),
    [
        ("forked", 1),
        pytest.param("forked", 5, marks=pytest.mark.long),
        pytest.param("alone", 5, marks=pytest.mark.long),
    ],
)
def test_references_pass_their_own_tests_many_times(
    start: str,
    times: int,
    box: CodeBox,
    rows: list[dict[str, object]],
    suites: list[CallSuite],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    places = NurseryPool(box, _LIMITS, _AT_ONCE)

    def evaluated(number: int) -> bool:
        task = number % len(rows)
        asked = (suites[task], str(rows[task]["ground_truth"]))
        if start == "alone":
            return set(verdicts(box, *asked)) == {"pass"}
        return set(places.run(lambda place: verdicts(place, *asked))) == {"pass"}

    descriptors, memory = _open(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        perfect = sum(pool.map(evaluated, range(times * len(rows))))
    places.close()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory

    assert len(rows) == 200
    kinds = Counter(type(value).__name__ for suite in suites for value in suite.expected)
    assert kinds["float"] == 455
    # One reference imports numpy, which is not there.
    assert [number for number, suite in enumerate(suites) if suite.unusable] == [118]
    assert perfect == times * 199
    assert _open() == descriptors
    assert not Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert list(tmp_path.iterdir()) == []
    assert grown < 16 << 10, f"{grown} KiB more"


def test_the_released_namespace_gives_the_same_values(
    box: CodeBox, rows: list[dict[str, object]], suites: list[CallSuite]
) -> None:
    """Each of these references is one function that needs nothing beside it."""
    released = _suites(box, rows, "published")
    assert [suite.expected for suite in released] == [suite.expected for suite in suites]


def _suites(box: CodeBox, rows: list[dict[str, object]], namespace: Namespace) -> list[CallSuite]:
    def one(row: dict[str, object]) -> CallSuite:
        calls = [*row["test_cases"].values()]  # type: ignore[attr-defined]
        return suite_of(box, str(row["ground_truth"]), calls, _LIMITS, namespace)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(one, rows))


def _open() -> int:
    return len([*Path("/proc/self/fd").iterdir()])
