"""Offline ArCHer: its step of the policy by hand, and as a job program that is killed or stopped,
whose critic comes to the exact values and whose policy is better than what it imitates."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.support.corridor_values import policy_values
from tests.support.run_digests import digests
from tests.torch.online_rl.corridor import EXPECTILE_V
from tests.torch.online_rl.recordings import wandering
from tests.torch.online_rl.runs import contract, kill_and_rerun
from tests.torch.trl.jobs import launch, make_job, small_model, write_rows
from tests.torch.trl.programs import run_program
from transformers import AutoModelForCausalLM

from agentc.backend_api.table import BackendTable
from agentc.compilation import compile_spec
from agentc.kinds.reinforcement import OfflineActorSteps
from agentc.program.job import read_rows
from agentc.runtime.contracts.artifacts import ContractError
from agentc_backends.agents.expert.backend import BACKEND as EXPERT
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.models.backend import SCRATCH
from agentc_backends.environments.corridor.backend import BACKEND as CORRIDOR
from agentc_backends.environments.corridor.rules import ACTIONS, ROOMS
from agentc_backends.trainers.online_rl.archer import OfflineArcherLearner
from agentc_backends.trainers.online_rl.backend import OFFLINE_ARCHER
from agentc_backends.trainers.online_rl.learning import Learning, reply_log_probs
from agentc_backends.trainers.online_rl.readers import Text, whole_text
from agentc_backends.trainers.online_rl.replay import (
    ReplayBuffer,
    decode_turns,
    episode_of_row,
    key_of,
    tokenise_episodes,
)
from agentc_backends.trainers.online_rl.sampling import Decode, Sampler
from agentc_backends.trainers.online_rl.settings import CriticPhase
from agentc_backends.trainers.online_rl.state import read_learner

PROGRAM = "agentc_backends.trainers.online_rl.job_offline"
SPEC = """
agentc: 1
name: run
environments: {corridor: {backend: corridor}}
prompts: {way_out: {instruction: "left, right or look?", acknowledgement: OK, reply_format: text}}
models: {base: {backend: scratch, hidden_size: 32, heads: 2, context: 256, corpus: [expert]}}
stages:
  expert: {kind: expert, environment: corridor, prompt: way_out, split: train}
  run: {kind: offline_rl, model: base, data: expert, discount: 0.9, SETTINGS}
"""
SHORT = """iterations: 4, warmup: 1, keep: [0, 2],
    critic: {lr: 1e-3, updates: 3, batch: 16}, actor: {lr: 1e-3, updates: 2, batch: 8}"""
FRESH = """iterations: 2, decode: {max_tokens: 4},
    critic: {lr: 1e-3, updates: 2, batch: 8, value_target: policy},
    actor: {objective: policy_gradient, advantage: centred, kl_penalty: 0.1, updates: 2,
            batch: 8}"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model"))


def run_job(
    root: Path, model: Path, rows: Sequence[Mapping[str, Any]], settings: str, **placement: Any
) -> Path:
    """The job file of a run, with the config that the compiler makes."""
    root.mkdir()
    spec = root / "spec.yaml"
    spec.write_text(SPEC.replace("SETTINGS", settings))
    known = (EXPERT, SCRATCH, CORRIDOR, OFFLINE_ARCHER)
    plan = compile_spec(spec, {}, BackendTable({each.id: each for each in known})).plan
    assert plan is not None
    job = next(job for job in plan.jobs if job.id == "run")
    assert not job.leases
    # Two inputs, as several stages give them.
    data = [
        write_rows(root / f"data{half}", "trajectories.jsonl", rows[half::2]) for half in (0, 1)
    ]
    path = make_job(
        root,
        "offline_rl",
        job.draft.config,
        {"model": [model], "data": data},
        {**job.draft.placement, **placement},
    )
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "contract": dict(job.draft.contract)}))
    return path


def ended(job: Path) -> Path:
    """The folder of a job, run to its end."""
    status, _, errors = run_program(job, PROGRAM)
    assert status == 0, errors
    return job.parent


@pytest.fixture(scope="module")
def whole_run(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed run."""
    root = tmp_path_factory.mktemp("whole") / "run"
    return ended(run_job(root, model, wandering(12), SHORT))


def test_what_is_published(whole_run: Path, tmp_path: Path) -> None:
    told = json.loads((whole_run / "job.json").read_text())
    contract(whole_run, told)
    run = json.loads((whole_run / "data" / "run.json").read_text())
    facts = json.loads((whole_run / "facts.json").read_text())
    curve = read_rows(whole_run / "data" / "curve.jsonl")
    rows = wandering(12)
    assert (run["algorithm"], run["iterations"], run["checkpoints"]) == ("archer", 4, [0, 2])
    assert run["trajectories"] == facts["trajectories"] == 12
    assert run["steps"] == sum(row["turns"] for row in rows)
    assert facts["return_mean"] == pytest.approx(sum(row["reward"] for row in rows) / 12)
    assert [row["iteration"] for row in curve] == [0, 1, 2, 3]
    assert ["v1.loss" in row["critic"] for row in curve] == [True] * 4
    assert ["actor" in row for row in curve] == [False, True, True, True]
    assert {"weight.max", "advantage.sd", "grad_norm"} < set(curve[-1]["actor"])
    assert read_rows(whole_run / "data" / "episodes.jsonl") == []
    kept = [whole_run / "data" / "checkpoints" / str(n) / "model.safetensors" for n in (0, 2)]
    last = (whole_run / "data" / "model.safetensors").read_bytes()
    # The policy is first changed in the iteration after warm-up.
    assert len({last, *(path.read_bytes() for path in kept)}) == 3
    assert (whole_run / "data" / "state" / "target.safetensors").is_file()
    with pytest.raises(ContractError, match="0 rows; expected at least 1"):
        contract(whole_run, {**told, "contract": {}})


@pytest.mark.long
def test_cut_by_three_time_limits(whole_run: Path, model: Path, tmp_path: Path) -> None:
    """Each stops after its first phase, with that saved."""
    job = run_job(tmp_path / "cut", model, wandering(12), SHORT)
    told = json.loads(job.read_text())
    for _ in range(3):
        job.write_text(json.dumps({**told, "stop_by": time.time() + 1}))
        status, _, errors = launch(job, PROGRAM)
        assert status == 75, errors
        assert json.loads((tmp_path / "cut" / "progress.json").read_text())["out_of_time"]
    job.write_text(json.dumps(told))
    assert digests(ended(job)) == digests(whole_run)


def test_killed_behind_its_first_iteration(whole_run: Path, model: Path, tmp_path: Path) -> None:
    job = run_job(tmp_path / "killed", model, wandering(12), SHORT, save_every=1)
    kill_and_rerun(job, [0.1], PROGRAM, "curve.jsonl")
    assert digests(tmp_path / "killed") == digests(whole_run)


@pytest.mark.long
@pytest.mark.parametrize("settings", [SHORT, FRESH])
def test_kills_at_random_moments(settings: str, model: Path, tmp_path: Path) -> None:
    undisturbed = ended(run_job(tmp_path / "whole", model, wandering(12), settings))
    chance = random.Random(1)
    for number in range(3):
        job = run_job(tmp_path / str(number), model, wandering(12), settings, save_every=1)
        kill_and_rerun(job, [chance.uniform(0, 2) for _ in range(2)], PROGRAM, "episodes.jsonl")
        assert digests(tmp_path / str(number)) == digests(undisturbed)


@pytest.mark.long
def test_fresh_replies_can_be_learnt_from(model: Path, tmp_path: Path) -> None:
    root = ended(run_job(tmp_path / "run", model, wandering(12), FRESH))
    contract(root, json.loads((root / "job.json").read_text()))
    told = read_rows(root / "data" / "curve.jsonl")[-1]["actor"]
    assert {"kl", "reply_tokens.mean"} < set(told)


def learner_of(
    folder: Path, critic: Mapping[str, Any], actor: Mapping[str, Any]
) -> OfflineArcherLearner:
    policy = AutoModelForCausalLM.from_pretrained(folder).eval()
    defaults = {
        "lr": 1e-3, "updates": 1, "batch": 16, "discount": 0.9, "target_rate": 0.1,
        "value_target": "expectile", "hidden": None, "start": 0.0, "max_grad_norm": 10.0,
    }  # fmt: skip
    return OfflineArcherLearner(
        Learning(
            policy=policy,
            tokenizer=None,
            sampler=Sampler(policy),
            decode=Decode(max_tokens=1, ends=frozenset()),
            seed=3,
            micro_batch=5,
        ),
        CriticPhase(**{**defaults, **critic}),
        OfflineActorSteps(**{"lr": 1e-3, "updates": 1, "batch": 16, "max_grad_norm": 0.0, **actor}),
    )


@pytest.mark.parametrize(("temperature", "most"), [(1.0, None), (0.05, 0.3)])
def test_a_step_imitates_by_what_the_critic_thinks(
    temperature: float, most: float | None, model: Path
) -> None:
    """The loss by hand: -mean of exp(A / T), at most `clip_weight`, times the log-probability."""
    rows = tokenise_episodes(wandering(6), load_encoder(model), "sum", 256).rows
    buffer = ReplayBuffer(1000, 0.9)
    buffer.add([*map(episode_of_row, rows)])
    learner = learner_of(model, {}, {"temperature": temperature, "clip_weight": most})
    batch = buffer.draw(16, key_of(3, "imitate", 7, 0))
    with torch.no_grad():
        read = learner.critic.read
        states, replies = read([row.state for row in batch]), read([row.reply for row in batch])
        q, v = learner.critic.q(states, replies), learner.critic.v(states)
        better = torch.minimum(q.first, q.second) - torch.minimum(v.first, v.second)
        pairs = [(row.state.ids, row.reply.ids) for row in batch]
        log_probs, mask = reply_log_probs(learner.modules["policy"], pairs)
        weights = (better / temperature).exp().clamp(max=most or float("inf"))
        expected = -(weights * (log_probs * mask).sum(dim=1)).mean()
    told = learner.learn("actor", 7, buffer)
    assert told["loss"] == pytest.approx(float(expected), rel=1e-5)
    assert told["weight.max"] == pytest.approx(float(weights.max()), rel=1e-5)
    assert most is None or float((better / temperature).exp().max()) > most


UNIFORM_V = (-5.77386544, -5.67475228, -3.74867428, 1.26364226)
"""Of actions drawn evenly, which is the expectile of 0.5."""
LEARNING = "lr: 1e-3, updates: 50, batch: 128, target_rate: 0.1, max_grad_norm: 10"


def state_of(rows: Sequence[Mapping[str, Any]], model: Path, room: str) -> Any:
    """What the policy is shown in a room, in tokens, out of the data themselves."""
    for row, found in zip(
        rows, tokenise_episodes(rows, load_encoder(model), "sum", 256).rows, strict=True
    ):
        for turn, said in enumerate(decode_turns(found["turn_tokens"])):
            if row["messages"][row["prompt_length"] - 1 + 2 * turn]["content"] == room:
                return said.prompt
    raise AssertionError(f"nobody was in {room}")


@pytest.mark.long
def test_the_critic_of_a_job_comes_near_the_best_that_the_data_hold(
    model: Path, tmp_path: Path
) -> None:
    """Trained on episodes of actions drawn evenly: D2's row of the expectile .9, which is more than
    3 above the value of such actions in every room."""
    # Values of the frequencies in so many episodes are themselves .1 from the exact ones.
    rows = wandering(6000)
    settings = """iterations: 60, actor: {lr: 1e-3, updates: 1, batch: 8},
        critic: {lr: 5e-4, updates: 50, batch: 128, target_rate: 0.1, max_grad_norm: 10}"""
    root = ended(run_job(tmp_path / "run", model, rows, settings))
    learner = learner_of(model, {}, {})
    read_learner(root / "data" / "state", learner)
    with torch.no_grad():  # the slow copy wavers less
        states = [whole_text(Text(state_of(rows[:400], model, room))) for room in ROOMS]
        found = learner.target.v(learner.target.read(states)).first
    assert (found - torch.tensor(EXPECTILE_V)).abs().max() < 0.25
    assert (found - torch.tensor(UNIFORM_V)).min() > 3


def policy_of(folder: Path, states: Sequence[Any], model: Path) -> list[list[float]]:
    """A model's chance of each action in each room; what is no action is as good as to look."""
    policy = AutoModelForCausalLM.from_pretrained(folder).eval()
    encoder = load_encoder(model)
    table = []
    for state in states:
        replies = [
            [*encoder.tokenizer(word, add_special_tokens=False)["input_ids"],
             encoder.tokenizer.eos_token_id]
            for word in ACTIONS
        ]  # fmt: skip
        with torch.no_grad():
            log_probs, mask = reply_log_probs(policy, [(state, reply) for reply in replies])
        left, right, _ = (log_probs * mask).sum(dim=1).exp().tolist()
        table.append([left, right, 1 - left - right])
    return table


@pytest.mark.long
def test_the_policy_is_better_than_what_it_imitates(model: Path, tmp_path: Path) -> None:
    """From the same episodes, in exact values of the policies: imitation of all of them, which is
    what infinitely warm weights do, and of each as the critic thinks of it."""
    rows = wandering(400)
    worth = {}
    for name, temperature in (("alike", 1e6), ("weighted", 1.0)):
        settings = f"""iterations: 20, critic: {{{LEARNING}}},
            actor: {{lr: 2e-3, updates: 20, batch: 64, temperature: {temperature}}}"""
        root = ended(run_job(tmp_path / name, model, rows, settings))
        states = [state_of(rows, model, room) for room in ROOMS]
        worth[name] = policy_values(policy_of(root / "data", states, model)).v[0]
    # Of actions drawn evenly the value is -5.77, of the best ones 3.21.
    assert worth["alike"] == pytest.approx(-5.77, abs=0.8)
    assert worth["weighted"] > worth["alike"] + 4
