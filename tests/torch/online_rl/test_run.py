"""A run of online RL as its job program: killed, cut by time limits, or undisturbed, it publishes
the same bytes; and what it publishes keeps the contract of a PolicyRun."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from safetensors.torch import load_file
from tests.support.run_digests import digests
from tests.torch.online_rl.runs import contract, kill_and_rerun
from tests.torch.online_rl.wanderer import wandering_model
from tests.torch.trl.jobs import launch, make_job
from tests.torch.trl.programs import run_program

from agentc.backend_api.table import BackendTable
from agentc.compilation import compile_spec
from agentc.program.job import read_rows
from agentc.runtime.contracts.artifacts import ContractError
from agentc_backends.agents.expert.backend import BACKEND as EXPERT
from agentc_backends.data.models.backend import SCRATCH
from agentc_backends.engine.model import load_tokenizer
from agentc_backends.environments.corridor.backend import BACKEND as CORRIDOR
from agentc_backends.openai_api.chat_text import ChatText
from agentc_backends.trainers.online_rl.backend import ARCHER, CHAI, FILTERED_BC, PPO
from agentc_backends.trainers.online_rl.replay import decode_turns
from agentc_backends.trainers.online_rl.trl_backend import TRL

PROGRAM = "agentc_backends.trainers.online_rl.job_online"
LIMITED = "tests.torch.online_rl.limited_program"
"""The same where a time limit is near after each phase."""
ITERATIONS, EPISODES = 4, 6
SPEC = """
agentc: 1
name: run
environments: {{corridor: {{backend: corridor, max_steps: 8, tasks: 10}}}}
prompts:
  way_out:
    instruction: "left, right or look?"
    acknowledgement: OK
    reply_format: text
    observation_prefix: ""
    memory: {memory}
models: {{base: {{backend: scratch, hidden_size: 32, heads: 2, context: 256, corpus: [expert]}}}}
stages:
  expert: {{kind: expert, environment: corridor, prompt: way_out, split: train}}
  run:
    kind: online_rl
    algorithm: {algorithm}
    model: base
    environment: corridor
    prompt: way_out
    split: train
    decode: {{max_tokens: 4}}
    iterations: {iterations}
    episodes: 6
    evaluate: {{split: test, limit: 3, every: 2}}
{more}
"""
_TRAINED = "warmup: 1\n    keep: [0, 2]"
_STEPS = "actor: {lr: 1e-3, updates: 2, batch: 8}"
_GROUPS = "actor: {lr: 1e-3, updates: 2}"
_CRITIC = "critic: {lr: 1e-3, updates: 3, batch: 16}"
MORE = {
    "archer": f"""
    {_TRAINED}
    {_STEPS}
    {_CRITIC}
""",
    "chai": f"""
    {_CRITIC}
    options: {{candidates: 3}}
""",
    "filtered_bc": f"""
    {_TRAINED}
    {_STEPS}
    options: {{keep_share: 0.5}}
""",
    "ppo": f"""
    {_TRAINED}
    actor: {{lr: 1e-3, batch: 16, kl_penalty: 0.1}}
    critic: {{lr: 1e-3, batch: 16}}
    options: {{epochs: 2, value_clip: 1, entropy_coef: 0.01}}
""",
    "grpo": f"""
    {_TRAINED}
    {_GROUPS}
    options: {{group: 3, minibatches: 2, beta: 0.05}}
""",
    "rloo": f"""
    {_TRAINED}
    {_GROUPS}
    options: {{group: 3}}
""",
}
OF_TRL = ("grpo", "rloo")


def runs(*always: str) -> list[Any]:
    """All of them, those that are not always run as long tests."""
    return [name if name in always else pytest.param(name, marks=pytest.mark.long) for name in MORE]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wandering_model(tmp_path_factory.mktemp("model"))


def run_job(
    root: Path,
    model: Path,
    algorithm: str,
    iterations: int = ITERATIONS,
    begun: Path | None = None,
    **placement: Any,
) -> Path:
    """The job file of a run, with config and lease as the compiler makes them; `begun` is one that
    it goes on from."""
    root.mkdir()
    spec = root / "spec.yaml"
    theirs = algorithm in OF_TRL
    spec.write_text(
        SPEC.format(
            algorithm=algorithm,
            memory="all" if theirs else "last",
            more=MORE[algorithm],
            iterations=iterations,
        )
    )
    known = (EXPERT, SCRATCH, CORRIDOR, ARCHER, CHAI, FILTERED_BC, PPO, TRL)
    plan = compile_spec(spec, {}, BackendTable({each.id: each for each in known})).plan
    assert plan is not None
    job = next(job for job in plan.jobs if job.id == "run")
    (leased,) = job.leases
    lease = leased.draft
    path = make_job(
        root,
        "online_rl",
        job.draft.config,
        {"model": [model], **({} if begun is None else {"start": [begun / "data"]})},
        {**job.draft.placement, **placement},
    )
    told = json.loads(path.read_text())
    told["leases"] = {
        "environment": {
            "inside": {
                "program": list(lease.program),
                "settings": dict(lease.settings),
                "expect": dict(lease.expect),
                "account": str(root / "account.json"),
            }
        }
    }
    told["contract"] = {"reward_range": list(job.draft.config["reward_range"])}
    path.write_text(json.dumps(told))
    return path


@pytest.fixture(scope="module", params=runs("archer", "filtered_bc", "grpo"))
def whole(
    request: pytest.FixtureRequest, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """An undisturbed run."""
    root = tmp_path_factory.mktemp("whole") / "run"
    status, _, errors = run_program(run_job(root, model, request.param), PROGRAM)
    assert status == 0, errors
    return request.param, root


def test_what_is_published(whole: tuple[str, Path], model: Path) -> None:
    backend, root = whole
    contract(root, json.loads((root / "job.json").read_text()))
    run = json.loads((root / "data" / "run.json").read_text())
    curve = read_rows(root / "data" / "curve.jsonl")
    episodes = read_rows(root / "data" / "episodes.jsonl")
    trained = backend != "chai"
    kept = [0, 2] if trained else []
    assert (run["algorithm"], run["iterations"], run["checkpoints"]) == (backend, 4, kept)
    assert [row["iteration"] for row in curve] == [0, 1, 2, 3]
    assert [row["trajectories"] for row in curve] == [6, 12, 18, 24]
    assert run["trajectories"] == len(episodes) == ITERATIONS * EPISODES
    assert curve[-1]["steps"] == sum(row["turns"] for row in episodes)
    assert [bool(row.get("actor")) for row in curve] == [False, *[trained] * 3]
    assert ["evaluation" in row for row in curve] == [True, False, True, False]
    evaluated = read_rows(root / "data" / "evaluations.jsonl")
    assert [row["iteration"] for row in evaluated] == [0] * 3 + [2] * 3 + [4] * 3
    folders = [root / "data", *(root / "data" / "checkpoints" / str(n) for n in kept)]
    policies = {(folder / "model.safetensors").read_bytes() for folder in folders}
    assert len(policies) == len(folders)
    began = load_file(model / "model.safetensors")
    same = load_file(root / "data" / "model.safetensors")
    assert trained == any(not torch.equal(value, began[name]) for name, value in same.items())
    ranks = backend in ("archer", "chai")
    assert ("critic" in run) == ranks
    if ranks:
        assert run["critic"]["memory"] == "last"
        assert "advantage.correlation" in curve[1]["critic"]
        assert (root / "data" / "state" / "target.safetensors").is_file()
    if backend == "ppo":
        assert all("explained" in row["critic"] for row in curve)
        assert [row["buffer"] for row in curve] == [
            sum(each["turns"] for each in episodes if each["iteration"] == number)
            for number in range(ITERATIONS)
        ]
    if backend in OF_TRL:
        tasks = [row["task_id"] for row in episodes]
        assert tasks == [task for task in tasks[::3] for _ in range(3)]
        assert len(set(tasks)) > 2


@pytest.mark.parametrize("whole", ["archer", "filtered_bc"], indirect=True)
def test_each_reply_was_shown_the_last_observation_alone(
    whole: tuple[str, Path], model: Path
) -> None:
    _, root = whole
    chat = ChatText(str(model), load_tokenizer(str(model)))
    rows = read_rows(root / "data" / "episodes.jsonl")
    assert max(row["turns"] for row in rows) > 2
    for row in rows:
        messages, opening = row["messages"], row["prompt_length"]
        for turn, said in enumerate(decode_turns(row["turn_tokens"])):
            shown = [*messages[: opening - 1], messages[opening - 1 + 2 * turn]]
            asked = chat.encode(shown, add_generation_prompt=True, continue_final_message=False)
            assert list(said.prompt) == asked


@pytest.mark.parametrize("whole", runs(), indirect=True)
def test_cut_by_three_time_limits(whole: tuple[str, Path], model: Path, tmp_path: Path) -> None:
    """Each attempt stops after the phase that it begins with, with that saved."""
    backend, root = whole
    job = run_job(tmp_path / "cut", model, backend)
    stopped = []
    for _ in range(3):
        status, _, errors = launch(job, LIMITED)
        assert status == 75, errors
        assert not any((tmp_path / "cut" / "data").iterdir())
        line = json.loads((tmp_path / "cut" / "progress.json").read_text())
        assert line["out_of_time"]
        stopped.append(re.findall(r"after (\d+) iterations and `(\w+)`", errors)[-1])
    first, *_ = stopped
    assert first == ("0", "mark")
    assert len(set(stopped)) == 3
    status, _, errors = run_program(job, PROGRAM)
    assert status == 0, errors
    assert digests(tmp_path / "cut") == digests(root)


@pytest.mark.parametrize("whole", runs("archer"), indirect=True)
def test_killed_at_one_moment(whole: tuple[str, Path], model: Path, tmp_path: Path) -> None:
    backend, root = whole
    job = run_job(tmp_path / "killed", model, backend, save_every=1, concurrency=3)
    kill_and_rerun(job, [4.0], PROGRAM, "episodes.jsonl")
    assert digests(tmp_path / "killed") == digests(root)


@pytest.mark.long
def test_twenty_kills_at_random_moments(
    whole: tuple[str, Path], model: Path, tmp_path: Path
) -> None:
    """Each run is killed now and then, wherever it is."""
    backend, root = whole
    chance = random.Random(1)
    for number in range(5):
        job = run_job(tmp_path / str(number), model, backend)
        kill_and_rerun(job, [chance.uniform(0, 8) for _ in range(4)], PROGRAM, "episodes.jsonl")
        assert digests(tmp_path / str(number)) == digests(root)


@pytest.mark.parametrize("whole", runs("archer"), indirect=True)
def test_two_and_two_iterations_are_four(
    whole: tuple[str, Path], model: Path, tmp_path: Path
) -> None:
    backend, root = whole
    first, second = tmp_path / "first", tmp_path / "second"
    for job in (
        run_job(first, model, backend, 2),
        run_job(second, model, backend, 2, first),
    ):
        status, _, errors = run_program(job, PROGRAM)
        assert status == 0, errors
    contract(second, json.loads((second / "job.json").read_text()))
    assert digests(second) == digests(root)
    shutil.rmtree(first / "data" / "state")
    status, _, errors = run_program(run_job(tmp_path / "third", model, backend, 2, first), PROGRAM)
    assert status == 1
    assert "publish_state: true" in errors


@pytest.mark.parametrize("whole", ["archer", "filtered_bc"], indirect=True)
@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("curve.jsonl", lambda text: text.split("\n", 1)[1], "one row for each of 4"),
        ("episodes.jsonl", lambda text: text.split("\n", 1)[1] + text.split("\n", 1)[0] + "\n",
         "must ascend"),
        ("run.json", lambda text: text.replace("[0, 2]", "[0, 3]"), "checkpoints/3/config.json"),
        ("episodes.jsonl", lambda text: text.replace('"turn_rewards": [-1.0', '"turn_rewards": [9'),
         "sum to"),
    ],
)  # fmt: skip
def test_a_broken_run_is_refused(
    file: str, change: Any, said: str, whole: tuple[str, Path], tmp_path: Path
) -> None:
    _, root = whole
    shutil.copytree(root / "data", tmp_path / "data")
    path = tmp_path / "data" / file
    path.write_text(change(path.read_text()))
    with pytest.raises(ContractError, match=said):
        contract(tmp_path, json.loads((root / "job.json").read_text()))
