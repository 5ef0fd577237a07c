"""Runs of variants of one experiment, by the shipped records; jobs are files that appear."""

from __future__ import annotations

import hashlib
import json

import pytest

from agentc.cli import main
from agentc.plan.work import find_work
from agentc.run.past import keep_plan
from agentc.run.record import Record
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder
from agentc.store.run_history import plan_in_use


def plan_text(name: str, scale: str | None, seed: int, edition: int, jobs: int = 4) -> str:
    """A chain of jobs. The spec's editions and seeds share what does not depend on them."""
    objects = []
    for number in range(jobs):
        depends = [edition if number > 0 else 0, seed if number > 1 else 0, scale]
        key = hashlib.sha256(repr((name, number, depends)).encode()).hexdigest()[:32]
        objects.append((f"j{number}", key))
    entries = []
    for number, (job, key) in enumerate(objects):
        before = [f"rollout/{objects[number - 1][1]}"] if number else []
        entries.append(
            {"id": job, "stage": job, "kind": "rollout", "key": key, "produces": "Trajectories",
             "inputs": {"x": before}, "leases": [], "software": "empty"}
        )  # fmt: skip
    document = {
        "plan": 2, "name": name, "params": {"seed": seed}, "jobs": entries, "software": {},
        "spec": {"file": "s.yaml", "sha256": "0"}, "sessions": [],
        "targets": [f"rollout/{objects[-1][1]}"],
        "experiment": {} if scale is None else {"scale": scale},
        **({"chosen": {"seed": seed}} if seed else {}),
    }  # fmt: skip
    return json.dumps(document)


def publish(layout: StoreLayout, name: str) -> None:
    folder = layout.object(name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "artifact.json").write_text('{"files": {}, "id": "x"}')


def run_once(layout: StoreLayout, text: str, until: str | None = None, code: int = 0) -> None:
    """A whole run of a plan, by the shipped records."""
    document = json.loads(text)
    folder = RunFolder.of_plan(layout, document)
    with plan_in_use(folder, keep_plan(folder, text)):
        work = find_work(document, layout, until)
        record = Record(folder, work, began=1.0)
        record.open(text, folder.path)
        for job in work.missing if code == 0 else ():
            publish(layout, f"rollout/{job['key']}")
        record.close(code, [])


def store_says(capsys: pytest.CaptureFixture[str], layout: StoreLayout, *words: str) -> str:
    capsys.readouterr()
    main([*words, "--store", str(layout.root)])
    shown = capsys.readouterr()
    return shown.out + shown.err
