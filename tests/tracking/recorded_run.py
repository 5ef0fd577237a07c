"""A small recorded run, put into a store step by step: what a DPO of the quickstart logged, the
first iterations of an online RL, an evaluation of two rounds, a comparison and verdicts.

Its training is cut off, and goes on from an earlier step, by the code that trainers resume with.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentc.runtime.store.layout import StoreLayout
from agentc_backends.trainers.common.step_log import keep_steps

RECORDED = Path(__file__).with_name("recorded")
LABEL, PROJECT = "quickstart@smoke", "quickstart"
CUT, RESUMED = 12, 8
"""The line that was being written when the training was cut off, and the step it went on from."""


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDED / name).read_text().splitlines()]


class RecordedRun:
    """The store of the run in a folder, with its plan. Nothing is there at first."""

    def __init__(self, folder: Path) -> None:
        self.layout = StoreLayout(folder / "store")
        self.plan = folder / "plan.json"
        self.steps = lines("steps.jsonl")
        # Trainers end a run whose loss is not finite; other numbers may be anything.
        self.steps[2]["entropy"] = float("nan")
        self.steps[3]["entropy"] = float("inf")
        self.steps[4]["entropy"] = float("-inf")
        rounds = [
            {"repeat": "eto", "round": number, "stages": [f"eto.{number}.evaluate"]}
            for number in (1, 2)
        ]
        self.document = {
            "plan": 2,
            "name": "quickstart",
            "params": {"rounds": 2, "seed": 0},
            "experiment": {"scale": "smoke", "rounds": rounds},
            "jobs": [
                _job("sft@seed=0", "dpo", "Checkpoint", config={"lr": 0.1, "lora": {"r": 8}}),
                _job("online", "online_rl", "PolicyRun"),
                _job("eto.1.evaluate", "evaluate", "Metrics", 1),
                _job("eto.2.evaluate", "evaluate", "Metrics", 2),
                _job("results", "compare", "Comparison"),
                _job("claims", "verdicts", "Verdicts"),
            ],
        }
        self.layout.root.mkdir(parents=True)
        self.plan.write_text(json.dumps(self.document))

    def name(self, job: str) -> str:
        (found,) = (each for each in self.document["jobs"] if each["id"] == job)  # type: ignore[attr-defined]
        return f"{found['kind']}/{found['key']}"

    def train_until_cut_off(self) -> None:
        """The first attempt: its last line is not whole."""
        log = self._staged("sft@seed=0") / "logs" / "steps.jsonl"
        log.parent.mkdir(parents=True)
        text = "".join(json.dumps(row) + "\n" for row in self.steps[:CUT])
        log.write_text(text[:-20])

    def resume(self, **changed: float) -> None:
        """The second attempt, to its end. Its clock is another one; `changed` are numbers that
        come out otherwise in the steps that it makes again."""
        log = self._staged("sft@seed=0") / "logs" / "steps.jsonl"
        keep_steps(log, RESUMED)
        with log.open("a") as out:
            for row in self.steps[RESUMED:]:
                again = changed if row["step"] < CUT else {}
                out.write(json.dumps({**row, "tokens_per_s": 1.0, **again}) + "\n")

    def play(self, iterations: int) -> None:
        """Online RL, so far."""
        curve = self._staged("online") / "work" / "curve.jsonl"
        curve.parent.mkdir(parents=True, exist_ok=True)
        rows = lines("curve.jsonl")[:iterations]
        curve.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def publish(self, job: str, data: Mapping[str, str] | None = None) -> None:
        """Rename what is staged, as a wrapper does, less its work; `data` are recorded files."""
        staged = self._staged(job)
        (staged / "data").mkdir(parents=True, exist_ok=True)
        for name, source in (data or {}).items():
            shutil.copyfile(RECORDED / source, staged / "data" / name)
        if (staged / "work").exists():
            (staged / "work" / "curve.jsonl").rename(staged / "data" / "curve.jsonl")
            (staged / "work").rmdir()
        (staged / "artifact.json").write_text("{}")
        target = self.layout.object(self.name(job))
        target.parent.mkdir(parents=True, exist_ok=True)
        staged.rename(target)

    def publish_results(self) -> None:
        for number in (1, 2):
            self.publish(f"eto.{number}.evaluate", {"metrics.json": "metrics.json"})
        self.publish("results", {"comparison.json": "comparison.json"})
        self.publish("claims", {"claims.json": "claims.json"})

    def expected(self) -> dict[str, dict[int, float]]:
        """The curve of the training, by metric and step: each step as it was seen first."""
        seen_first = CUT - 1
        found: dict[str, dict[int, float]] = {}
        for row in self.steps:
            row = dict(row)
            step = row.pop("step")
            if step > seen_first:
                row["tokens_per_s"] = 1.0
            for name, value in row.items():
                if value is not None:
                    found.setdefault(name, {})[step] = value
        return found

    def _staged(self, job: str) -> Path:
        return self.layout.staging(self.name(job))


def _job(
    name: str,
    kind: str,
    produces: str,
    number: int | None = None,
    config: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    key = name.encode().hex().ljust(32, "0")[:32]
    return {
        "id": name, "stage": name, "kind": kind, "key": key, "produces": produces,
        "backend": f"recorded.{kind}", "round": number, "config": config or {},
    }  # fmt: skip
