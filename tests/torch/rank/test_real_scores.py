"""Candidates drawn and ranked on real servers, held against plain forward passes of the same models
over these very tokens."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from tests.backends.conftest import write_job
from tests.backends.servers.conformance import started
from transformers import AutoModelForCausalLM, AutoTokenizer

from agentc.program.job import Job, read_rows
from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.agents.rank.job_rank import rank
from agentc_backends.agents.rank.job_reference import score
from agentc_backends.agents.sample.job_sample import sample
from agentc_backends.data.chat.tokens import Encoder

sys.path.insert(0, str(Path(__file__).parents[1] / "transformers_server"))

from tiny_models import CONFIGS, make_model

SERVER = "agentc_backends.servers.transformers.job_serve"
TOLERANCE = 1e-4
SAMPLE = {
    "candidates": 10,
    "decode": {"temperature": 1.0, "top_p": 1.0, "max_tokens": 12, "stop": []},
    "fraction": 1.0,
    "limit": None,
    "take": "hash",
    "turns": None,
    "on_overflow": "error",
    "seed": 3,
}
TEMPLATE = "In light that the answer is: {privileged}."
NOTES = {
    "parameterisation": "log_ratio",
    "normalisation": "turn",
    "template": TEMPLATE,
    "reference": "model/policy",
    "reference_sees": "privileged",
    "beta": 0.1,
    "objective": "bradley_terry",
}
Work = Callable[[Job], Awaitable[None]]


def trajectories() -> Iterator[dict[str, Any]]:
    """Five episodes of two turns."""
    for task in range(5):
        messages = [
            {"role": "user", "content": f"goal {task} craft oak planks"},
            {"role": "assistant", "content": f"Action: get {task} oak log"},
            {"role": "user", "content": f"Observation: Got {task} oak log"},
            {"role": "assistant", "content": "Action: craft planks"},
        ]
        yield {
            "id": f"t{task}#0", "task_id": f"t{task}", "attempt": 0, "split": "train",
            "messages": messages, "prompt_length": 1, "reward": 0.0, "end": "limit",
        }  # fmt: skip


def write(folder: Path, name: str, rows: Iterator[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder


class Bench:
    """Two models behind servers, and jobs that ask them."""

    def __init__(self, root: Path, leases: Mapping[str, Mapping[str, Any]]) -> None:
        self.root = root
        self.models = {name: root / name for name in leases}
        self._leases = leases
        self._done: dict[str, Path] = {}
        self._loaded: dict[str, tuple[Encoder, Any]] = {}

    def run(
        self,
        name: str,
        work: Work,
        config: Mapping[str, Any],
        inputs: Mapping[str, Sequence[Path]],
        model: str,
    ) -> Path:
        """The data of a job, which is run once."""
        if name not in self._done:
            staging = self.root / name
            placement = {"concurrency": 8, "error_budget": 0.0}
            leased = {"policy": self._leases[model]}
            job = Job(write_job(staging, config, inputs=inputs, placement=placement, leases=leased))
            asyncio.run(work(job))  # type: ignore[arg-type]
            self._done[name] = staging / "data"
        return self._done[name]

    def candidates(self) -> Path:
        given = write(self.root / "played", "trajectories.jsonl", trajectories())
        return self.run("sample", sample, SAMPLE, {"rollouts": [given]}, "policy")

    def ranked(self, span: str) -> Path:
        """Turns that the critic ranked behind hidden texts, the reference behind the history."""
        drawn = {"candidates": [self.candidates()]}
        told = {"context": "history", "span": span}
        scores = self.run(f"reference-{span}", score, told, drawn, "policy")
        hidden = write(self.root / "hidden", "privileged.jsonl", (
            {"id": f"t{n}", "task_id": f"t{n}", "text": f"craft {n}"} for n in range(5)
        ))  # fmt: skip
        given = {
            **drawn,
            "critic": [self.models["critic"]],
            "scores": [scores],
            "privileged": [hidden],
        }
        return self.run(f"rank-{span}", rank, {"span": span}, given, "critic")

    def direct(
        self, model: str, prompt: Sequence[Mapping[str, str]], tokens: Sequence[int]
    ) -> list[float]:
        """Log-probabilities of all tokens but the first by one forward pass, the prompt's too."""
        if model not in self._loaded:
            folder = self.models[model]
            encoder = Encoder(AutoTokenizer.from_pretrained(folder), "chatml")
            network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
            self._loaded[model] = encoder, network
        encoder, network = self._loaded[model]
        ids = torch.tensor([[*encoder.encode_prompt(prompt), *tokens]])
        with torch.no_grad():
            spread = network(ids).logits[0, :-1].log_softmax(-1)
        found: list[float] = spread.gather(1, ids[0, 1:, None])[:, 0].tolist()
        return found


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    root = tmp_path_factory.mktemp("models")
    leases: dict[str, dict[str, Any]] = {}
    servers = []
    for seed, name in enumerate(("policy", "critic")):
        make_model(root / name, CONFIGS["llama-gqa"], seed=seed)
        arguments = ["--model", str(root / name), "--max-model-len", "400"]
        place = tmp_path_factory.mktemp(f"server-{name}")
        servers.append(started(sys.executable, SERVER, arguments, place))
        url = servers[-1].__enter__()[0]
        leases[name] = {"url": url, "token": "test-token", "model": "policy", "log": "log"}
    (root / "critic" / "agentc_critic.json").write_text(json.dumps(NOTES), "utf-8")
    yield Bench(root, leases)
    for server in servers:
        server.__exit__(None, None, None)


def turns_of(folder: Path, name: str) -> list[dict[str, Any]]:
    return list(read_rows(folder / name))


def test_recorded_log_probs_are_those_of_a_forward_pass(bench: Bench) -> None:
    data = bench.candidates()
    check_artifact("Candidates", data, {"candidates": 10, "seed": 3}, {}, {})
    compared = 0
    for turn in turns_of(data, "candidates.jsonl"):
        for candidate in turn["candidates"]:
            own = bench.direct("policy", turn["prompt"], candidate["tokens"])
            wanted = sum(own[-len(candidate["tokens"]) :])
            assert candidate["logprob_sum"] == pytest.approx(wanted, abs=TOLERANCE)
            compared += 1
    assert compared == 100


def test_ranked_scores_are_those_of_forward_passes(bench: Bench) -> None:
    data = bench.ranked("reply")
    check_artifact("RewardedTurns", data, {}, {"critic": [str(bench.models["critic"])]}, {})
    compared = 0
    for turn in turns_of(data, "turns.jsonl"):
        number = turn["task_id"][1:]
        first, *rest = turn["prompt"]
        prefix = f"In light that the answer is: craft {number}.\n\n"
        seen = [{**first, "content": prefix + first["content"]}, *rest]
        for candidate in turn["candidates"]:
            tokens = candidate["tokens"]
            ours = bench.direct("critic", seen, tokens)[-len(tokens) :]
            theirs = bench.direct("policy", turn["prompt"], tokens)[-len(tokens) :]
            assert candidate["critic"]["sum"] == pytest.approx(sum(ours), abs=TOLERANCE)
            assert candidate["reference"]["sum"] == pytest.approx(sum(theirs), abs=TOLERANCE)
            # What the policy recorded when it drew them is the same model's.
            assert candidate["reference"]["sum"] == pytest.approx(
                candidate["logprob_sum"], abs=TOLERANCE
            )
            wanted = (sum(ours) - sum(theirs)) / len(tokens)
            assert candidate["advantage"] == pytest.approx(wanted, abs=TOLERANCE)
            compared += 1
    assert compared == 100


def test_the_published_span_takes_the_header_in_and_leaves_the_end_out(bench: Bench) -> None:
    tokenizer = AutoTokenizer.from_pretrained(bench.models["policy"])
    header = len(tokenizer.encode("<|im_start|>assistant\n", add_special_tokens=False))
    turn = turns_of(bench.ranked("published"), "turns.jsonl")[0]
    for candidate in turn["candidates"]:
        tokens = candidate["tokens"]
        own = bench.direct("policy", turn["prompt"], tokens)
        end = len(own) if candidate.get("cut") else len(own) - 1
        wanted = own[len(own) - len(tokens) - header : end]
        assert candidate["reference"]["n"] == len(wanted)
        assert candidate["reference"]["sum"] == pytest.approx(sum(wanted), abs=TOLERANCE)
    assert any(candidate.get("cut") for candidate in turn["candidates"])


def test_no_hidden_text_is_written(bench: Bench) -> None:
    bench.ranked("reply")
    hidden = "In light that"
    folders = [path for path in bench.root.iterdir() if path.name.startswith(("rank", "refer"))]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if hidden.encode() in path.read_bytes()] == []
