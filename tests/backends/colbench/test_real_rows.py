"""200 rows of ColBench's own (not ours to ship): what they are, and a dry run over all of them."""

from __future__ import annotations

import hashlib
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.backends.colbench.conftest import SHARED

from agentc_backends.data.chat.formats import RowsError
from agentc_backends.data.chat.hidden_texts import HiddenTexts
from agentc_backends.environments.colbench.dialogue import code_starts
from agentc_backends.environments.colbench.environment import ColBenchEnvironment
from agentc_backends.environments.colbench.job_serve import open_world
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import read_tasks

MARKER = "I WANT TO ANSWER:"
EVERY = {"all": {"range": [0, 200]}}


def _file(name: str, digest: str) -> Path:
    file = SHARED / "data/colbench" / name
    if not file.is_file():
        pytest.skip(f"no tasks at {file}; set AGENTC_SHARED")
    assert hashlib.sha256(file.read_bytes()).hexdigest().startswith(digest)
    return file


@pytest.fixture(scope="module")
def file() -> Path:
    return _file("backend_200.jsonl", "822decc8")


def test_what_the_rows_are(file: Path) -> None:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == 200
    assert {tuple(sorted(row)) for row in rows} == {
        ("ground_truth", "hidden_information", "problem_description", "test_cases")
    }
    assert {len(row["test_cases"]) for row in rows} == {10}
    references = [row["ground_truth"] for row in rows]
    descriptions = [row["problem_description"] for row in rows]
    assert [row["hidden_information"] for row in rows] == references
    assert sum("The signature of the function is" in each for each in descriptions) == 200
    assert sum(bool(re.search(r"(?m)^(import|from) ", each)) for each in references) == 0
    assert sum(bool(re.search(r"(?m)^\s+(import|from) ", each)) for each in references) == 2
    assert len(set(descriptions)) == 200
    assert round(sum(map(len, descriptions)) / 200, 1) == 391.3
    assert round(sum(map(len, references)) / 200, 1) == 346.7
    tasks = read_tasks(file.read_bytes(), file.name)
    assert [task.reference for task in tasks] == references
    assert len({task.id for task in tasks}) == 200
    assert {len(task.calls) for task in tasks} == {10}


def test_descriptions_are_no_leaks_and_references_are(file: Path, tmp_path: Path) -> None:
    tasks = read_tasks(file.read_bytes(), file.name)
    rows = [json.dumps({"task_id": task.id, "text": task.reference}) for task in tasks]
    (tmp_path / "privileged.jsonl").write_text("\n".join(rows) + "\n")
    hidden = HiddenTexts([tmp_path], "{privileged}")
    for task in tasks:
        hidden.require_unseen(task.id, [{"role": "user", "content": task.description}])
        told = f"{task.description}\n{task.reference}"
        with pytest.raises(RowsError, match="of its hidden text"):
            hidden.require_unseen(task.id, [{"role": "user", "content": told}])
        assert code_starts(task.description, task.reference, task.description) is None
        assert code_starts(told, task.reference, task.description) is not None


def test_what_the_pages_are() -> None:
    """The frontend's tasks, which no environment reads yet."""
    text = _file("frontend_100.jsonl", "674e751b").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    pages = [row["ground_truth"] for row in rows]
    assert {tuple(sorted(row)) for row in rows} == {("ground_truth", "problem_description")}
    held = ["</html>", "tailwindcss@2.2.19", "/id/48/", "<img", "<script", "<iframe"]
    assert [sum(each in page for page in pages) for each in held] == [100, 100, 62, 54, 1, 1]
    assert sum(page.startswith("<html") for page in pages) == 100
    assert sum(page.count("url(") > 0 for page in pages) == 11
    assert round(sum(map(len, pages)) / 100, 1) == 1560.6
    assert len({row["problem_description"] for row in rows}) == 100


def _opened(file: Path, namespace: Any = "fresh") -> Any:
    return open_world(ColBenchSettings(tasks=str(file), splits=EVERY, namespace=namespace))


def _play(world: ColBenchEnvironment, task: str) -> tuple[float, float]:
    """Rewards of the reference, after a question, and of an empty function."""
    reference = world._world.tasks[task].reference
    world.reset(task)
    assert not world.step("What does it return?")[2]
    right = world.step(f"{MARKER}\n{reference}")[1]
    world.reset(task)
    name = re.findall(r"def (\w+)", reference)[0]
    return right, world.step(f"{MARKER}\ndef {name}(*_, **__): pass")[1]


def test_some_references_pass_and_empty_functions_do_not(file: Path) -> None:
    world = _opened(file)()
    assert [_play(world, task) for task in world.tasks("all")[8:14]] == [(1.0, 0.0)] * 6


@pytest.mark.slow
@pytest.mark.parametrize("namespace", ["fresh", pytest.param("published", marks=pytest.mark.long)])
def test_a_dry_run_over_all_rows(file: Path, namespace: str) -> None:
    opener = _opened(file, namespace)
    worlds = [opener() for _ in range(200)]
    tasks = worlds[0].tasks("all")
    with ThreadPoolExecutor(3) as pool:
        rewards = [*pool.map(_play, worlds, tasks)]
    has_numpy = worlds[0]._world.judge._box.interpreter.packages
    empty = [task for task, (_, reward) in zip(tasks, rewards, strict=True) if reward]
    # Of one task, all calls compare what the function gives with a number: `f(...) == 1`.
    assert empty == ["83b42652a57827f1"]
    assert max(reward for _, reward in rewards) == 0.8
    assert sum(right == 1.0 for right, _ in rewards) == (200 if has_numpy else 199)
