"""A store as a finished run of two rounds leaves it, with numbers that look like real ones."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentc_backends.agents.evaluate.metrics import measure
from agentc_backends.results.compare.job_compare import compare

CONFIDENCE = 0.95
LOCK = "jinja2==3\n"
EXPERIMENT: dict[str, Any] = {
    "name": "quickstart",
    "description": "Exploration-based trajectory optimisation of a small Llama on TextCraft: "
    "supervised fine-tuning, then rounds of exploration, contrastive pairs and DPO.",
    "paper": {
        "title": "Trial and Error: Exploration-Based Trajectory Optimization for LLM Agents",
        "authors": ["Yifan Song", "Da Yin", "Xiang Yue"],
        "venue": "ACL",
        "year": 2024,
        "url": "https://arxiv.org/abs/2403.02502",
        "code": "https://github.com/Yifan-Song793/ETO",
    },
    "discrepancies": [
        {
            "what": "learning rate of SFT",
            "paper": "1e-5",
            "code": "2e-5",
            "chosen": "the code's, which the published numbers were made with",
        }
    ],
    "rounds": [
        {"repeat": "eto", "round": n, "stages": [f"eto.{n}.{s}" for s in ("explore", "dpo")]}
        for n in (1, 2)
    ],
}
ENVIRONMENTS = {
    "light": {"httpx2": "2.16.2", "starlette": "1.10.0", "textcraft": "0.0.3"},
    "torch": {f"package-{n}": f"1.{n}.0" for n in range(40)},
}


@dataclass
class ExampleStore:
    """Writes objects; `inputs` maps stages to data directories as the report job gets them."""

    root: Path
    inputs: dict[str, list[Path]] = field(default_factory=dict)
    started: float = 1_780_000_000.0

    def add(
        self,
        name: str,
        kind: str,
        type: str,
        files: dict[str, str],
        *,
        inputs: dict[str, list[str]] | None = None,
        steps: Iterable[dict[str, Any]] = (),
        facts: dict[str, Any] | None = None,
        wall_s: float = 12.0,
        stage: bool = True,
    ) -> str:
        """Publish an object; returns its name."""
        key = hashlib.sha256(name.encode()).hexdigest()[:32]
        folder = self.root / "objects" / kind / key
        (folder / "data").mkdir(parents=True)
        (folder / "logs").mkdir()
        for file, text in files.items():
            (folder / "data" / file).write_text(text, encoding="utf-8")
        lines = [json.dumps(step) + "\n" for step in steps]
        if lines:
            (folder / "logs" / "steps.jsonl").write_text("".join(lines), encoding="utf-8")
        environment = "torch" if kind in ("model", "sft", "dpo") else "light"
        manifest = {
            "manifest": 1,
            "id": name,
            "kind": kind,
            "key": key,
            "type": type,
            "backend": f"{kind}.example",
            "version": 1,
            "inputs": inputs or {},
            "identity": {"settings": {"seed": 0, "lr": 1e-3}, "facts": {}},
            "config": {"note": "the whole configuration", "nested": {"values": [1, 2, 3]}},
            "software": {
                "name": environment,
                "lock": hashlib.sha256(environment.encode()).hexdigest(),
                "python": "3.11.7",
                "versions": ENVIRONMENTS[environment],
            },
            "leases": (
                [{"role": "policy", "backend": "serve.transformers", "version": 1,
                  "identity": {"dtype": "float32"}, "ready_s": 4.2}]
                if kind == "rollout" else []
            ),
            "facts": facts or {},
            "hardware": {"host": "box", "cpus": 2, "memory_mb": 24000, "gpus": []},
            "started": self.started,
            "wall_s": wall_s,
            "cpu_s": wall_s * 1.6,
            "max_rss_mb": 640.0,
            "attempts": 1,
            "files": {f"data/{file}": "0" * 64 for file in files},
            "origin": {"file": "quickstart.yaml", "line": 3, "column": 1, "steps": []},
        }  # fmt: skip
        self.started += wall_s
        (folder / "artifact.json").write_text(json.dumps(manifest), encoding="utf-8")
        if stage:
            self.inputs[name] = [folder / "data"]
        return f"{kind}/{key}"


def episodes(
    skill: float, count: int, *, source: str, seed: int, errors: int = 0
) -> list[dict[str, Any]]:
    """Rows of trajectories.jsonl whose rewards have about the mean `skill`."""
    draw = random.Random(f"{source}{seed}")
    rows = []
    for number in range(count):
        task = f"minecraft:item_{number}"
        messages = [
            {"role": "user", "content": "Craft the goal from the commands given."},
            {"role": "assistant", "content": "OK"},
            {"role": "user", "content": f"Crafting commands:\n...\n\nGoal: craft item {number}."},
        ]
        turns = draw.randint(2, 7)
        for turn in range(turns):
            messages.append(
                {"role": "assistant", "content": f"Thought: step {turn}\nAction: get 1 oak log"}
            )
            messages.append({"role": "user", "content": "Observation: Got 1 oak log"})
        last = messages.pop()["content"]
        failed = number < errors
        won = draw.random() < skill
        end = "error" if failed else "success" if won else draw.choice(["limit", "failure"])
        rows.append(
            {
                "id": f"{task}#0",
                "task_id": task,
                "attempt": 0,
                "seed": number,
                "prompt_seed": 0,
                "split": "test",
                "messages": messages,
                "prompt_length": 3,
                "last_observation": last,
                "reward": None if failed else float(won),
                "success": won and not failed,
                "end": end,
                "error": "POST /v1/chat/completions: 503" if failed else None,
                "turns": turns,
                "invalid": draw.randint(0, 1),
                "rewards": [0.0] * turns,
                "tokens": {"prompt": 900, "completion": 90},
                "stops": {"stop": turns},
                "source": source,
            }
        )
    return rows


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def training(steps: int, *, preference: bool) -> list[dict[str, Any]]:
    draw = random.Random(steps)
    log = []
    for step in range(1, steps + 1):
        line = {"step": step, "lr": 1e-3, "loss": 2.5 / (1 + step / 12) + draw.random() * 0.08}
        if preference:
            share = step / steps
            line = {
                **line,
                "loss": 0.69 - 0.3 * share + draw.random() * 0.03,
                "rewards/accuracies": min(1.0, 0.5 + 0.4 * share + draw.random() * 0.1),
                "rewards/margins": 1.2 * share + draw.random() * 0.1,
            }
        log.append(line)
    return log


def build(root: Path, rounds: int = 2) -> ExampleStore:
    """The store of the example."""
    store = ExampleStore(root)
    expert = store.add("expert", "expert", "Trajectories",
                       {"trajectories.jsonl": lines(episodes(1.0, 120, source="expert", seed=0))},
                       facts={"episodes": 120, "reward_mean": 1.0}, wall_s=3.4)  # fmt: skip
    base = store.add("base", "model", "Checkpoint", {"config.json": "{}"},
                     inputs={"corpus": [expert]}, wall_s=5.1)  # fmt: skip
    sft = store.add("sft", "sft", "Checkpoint", {"config.json": "{}"},
                    inputs={"model": [base], "data": [expert]}, wall_s=96.0,
                    steps=training(90, preference=False),
                    facts={"trained_tokens": 48211})  # fmt: skip
    measured: list[tuple[str, Any, str]] = []

    def evaluate(name: str, policy: str, skill: float, errors: int = 0) -> None:
        rows = episodes(skill, 100, source="policy", seed=7, errors=errors)
        rollout = store.add(f"{name}:rollout", "rollout", "Trajectories",
                            {"trajectories.jsonl": lines(rows)}, inputs={"model": [policy]},
                            wall_s=21.5, stage=False)  # fmt: skip
        metrics = measure(
            rows, CONFIDENCE, success_at=None, split="test", environment="textcraft",
            reward_range=(0.0, 1.0), protocol={"attempts": 1},
        )  # fmt: skip
        made = store.add(name, "evaluate", "Metrics", {"metrics.json": json.dumps(metrics)},
                         inputs={"rollouts": [rollout]}, wall_s=0.2)  # fmt: skip
        measured.append((name, metrics, made))

    evaluate("evaluate_untrained", base, 0.0)
    evaluate("evaluate_sft", sft, 0.42)
    policy = sft
    for number in range(1, rounds + 1):
        explored = store.add(
            f"eto.{number}.explore", "rollout", "Trajectories",
            {"trajectories.jsonl": lines(episodes(0.5, 120, source="policy", seed=number))},
            inputs={"model": [policy]}, wall_s=34.0,
        )  # fmt: skip
        pairs = store.add(f"eto.{number}.pairs", "pair", "PreferencePairs", {"pairs.jsonl": ""},
                          inputs={"expert": [expert], "rollouts": [explored]}, wall_s=0.3,
                          facts={"win": 0, "tie": 61, "lose": 59,
                                 "skipped": {"no_expert": 2}})  # fmt: skip
        policy = store.add(f"eto.{number}.dpo", "dpo", "Checkpoint", {"config.json": "{}"},
                           inputs={"model": [policy], "data": [pairs]}, wall_s=61.0,
                           steps=training(40, preference=True))  # fmt: skip
        evaluate(f"eto.{number}.evaluate", policy, 0.42 + 0.12 * number, errors=number - 1)
    one = measured[1]
    table = compare([(n, m) for n, m, _ in measured], (one[0], one[1]), CONFIDENCE)
    store.add("results", "compare", "Comparison", {"comparison.json": json.dumps(table)},
              inputs={"of": [made for *_, made in measured]}, wall_s=0.4)  # fmt: skip
    return store


@pytest.fixture(scope="session")
def built_store(tmp_path_factory: pytest.TempPathFactory) -> ExampleStore:
    return build(tmp_path_factory.mktemp("example") / "store")


@pytest.fixture
def example_store(built_store: ExampleStore, tmp_path: Path) -> ExampleStore:
    """A copy of the store, for a test to change."""
    root = Path(shutil.copytree(built_store.root, tmp_path / "store"))
    inputs = {
        name: [root / place.relative_to(built_store.root) for place in places]
        for name, places in built_store.inputs.items()
    }
    return ExampleStore(root, inputs, built_store.started)


@pytest.fixture
def experiment() -> dict[str, Any]:
    return EXPERIMENT


@pytest.fixture
def run_folder(
    example_store: Any, experiment: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A store that holds a run of the example whose report is still to come. Its software
    stack is this interpreter, so that nothing is installed."""
    digest = hashlib.sha256(LOCK.encode()).hexdigest()
    environment = tmp_path / "software" / digest[:16]
    (environment / "bin").mkdir(parents=True)
    python = environment / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    complete = {"lock": digest, "python": "3", "versions": {}}
    (environment / "complete.json").write_text(json.dumps(complete), encoding="utf-8")
    monkeypatch.setenv("AGENTC_SOFTWARE", str(tmp_path / "software"))
    monkeypatch.setenv("AGENTC_STORE", str(example_store.root))

    jobs = []
    inputs = {}
    for stage, [data] in example_store.inputs.items():
        manifest = json.loads((data.parent / "artifact.json").read_text("utf-8"))
        jobs.append({name: manifest[name] for name in ("id", "kind", "key", "inputs")})
        inputs[stage] = [f"{manifest['kind']}/{manifest['key']}"]
    inputs = {**inputs, "later": [f"dpo/{'9' * 32}"]}
    jobs.append({"id": "later", "kind": "dpo", "key": "9" * 32, "inputs": {}})
    jobs.append(
        {
            "id": "report",
            "kind": "report",
            "produces": "Report",
            "key": "8" * 32,
            "inputs": inputs,
            "software": "light",
            "program": ["-m", "agentc_backends.results.report.job_report"],
            "config": {
                "experiment": experiment,
                "stages": list(inputs),
                "trajectories": 5,
                "missing": [],
            },
            "placement": {},
            "contract": {},
        }
    )
    names = {f"{job['kind']}/{job['key']}" for job in jobs}
    for job in jobs:  # the inner rollouts of evaluations are no jobs of this small plan
        job["inputs"] = {
            role: [one for one in ones if one in names] for role, ones in job["inputs"].items()
        }
        job["leases"] = []
    plan = {
        "plan": 2,
        "name": "quickstart",
        "jobs": jobs,
        "targets": [f"report/{'8' * 32}"],
        "software": {"light": {"lock": digest, "file": "software/light.txt"}},
    }
    plans = tmp_path / "plans" / "quickstart"
    (plans / "software").mkdir(parents=True)
    (plans / "software" / "light.txt").write_text(LOCK, encoding="utf-8")
    (plans / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    folder: Path = example_store.root / "runs" / "quickstart"
    folder.mkdir(parents=True)
    (folder / "last-plan.json").write_text(json.dumps(plan), encoding="utf-8")
    state = {"plan": str(plans / "plan.json")}
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
    return folder
