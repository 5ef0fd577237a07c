"""serve.vllm: its flags against vLLM's own parser, and a real server against the shared checks.

Needs the vllm software stack: that of the store, or the interpreter in AGENTC_VLLM_PYTHON.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from streaming import STREAMING
from tests.backends.conftest import write_job
from tests.support.patience import PATIENCE_S
from tests.support.vllm_software import tiny_model, vllm_python, vllm_variables

from agentc.backend_api import OptionView
from agentc.plan.render import record
from agentc.plan.tree import rank_commands
from agentc.program.job import Job
from agentc.runtime.machine.device_lease import CORES_VARIABLE, allowed_cores
from agentc.runtime.servers import server_ranks
from agentc_backends.agents.common.agreement import compare_with_trainer
from agentc_backends.agents.common.connect import ChatPolicy
from agentc_backends.clients.errors import ContextOverflowError
from agentc_backends.servers.vllm.backend import BACKEND
from conformance import CHECKS, Target
from serving import free_port, running

pytestmark = [pytest.mark.slow, pytest.mark.vllm]
FLIPPED: dict[str, Any] = {
    "max_model_len": 256, "dtype": "bfloat16", "quantization": "awq", "kv_cache_dtype": "fp8",
    "seed": 7, "enable_prefix_caching": False, "enforce_eager": False,
    "enable_chunked_prefill": True,
    "tensor_parallel": 2, "pipeline_parallel": 2, "gpu_memory_utilization": 0.5,
    "max_num_seqs": 8, "max_num_batched_tokens": 512, "cpu_offload_gb": 1.5,
}  # fmt: skip
PARSE = """
import json, sys
from agentc_backends.servers.vllm.job_serve import alias_distribution
alias_distribution()
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = make_arg_parser(FlexibleArgumentParser())
known = {flag for action in parser._actions for flag in action.option_strings}
for words in json.load(sys.stdin):
    unknown = [w for w in words if w.startswith("-") and w not in known]
    space = vars(parser.parse_args(words))
    print(json.dumps([unknown, {k: v for k, v in space.items() if not hasattr(v, "__dict__")}],
                     default=str))
"""


@pytest.fixture(scope="session")
def python() -> str:
    return vllm_python()


FILLED = {"{served_name}": "policy", "{host}": "127.0.0.1", "{port}": "8000"}


def words_of(**values: Any) -> list[str]:
    """Arguments after `serve MODEL`, with placeholders filled in."""
    program = BACKEND.lease(OptionView(table=BACKEND.fields, values=values)).program
    return [FILLED.get(word, word) for word in program[4:]]


def parse(python: str, cases: list[list[str]]) -> list[tuple[list[str], dict[str, Any]]]:
    """What vLLM's own parser makes of each: unknown flags, and the values."""
    done = subprocess.run(
        [python, "-c", PARSE], input=json.dumps(cases), env=vllm_variables(), capture_output=True,
        text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[[")]
    assert len(lines) == len(cases)
    return [(unknown, space) for unknown, space in lines]


def test_every_flag_is_one_of_vllms_own(python: str) -> None:
    # On CPUs, layers in groups need graphs: what null means of `enforce_eager` follows.
    beside = {"pipeline_parallel": {"enforce_eager": True}}
    cases = [words_of(**{name: value}, **beside.get(name, {})) for name, value in FLIPPED.items()]
    cases.insert(0, words_of())
    lines = parse(python, cases)
    assert all(unknown == [] for unknown, _ in lines)
    (_, plain), *flipped = lines
    for name, (_, space) in zip(FLIPPED, flipped, strict=True):
        changed = {key for key in space if space[key] != plain.get(key)}
        assert len(changed) == 1, (name, changed)


def test_each_ranks_command_is_one_of_vllms_own(python: str) -> None:
    """Four GPUs on each of two nodes: tensor parallel within a node, pipeline over both."""
    draft = BACKEND.lease(OptionView(table=BACKEND.fields, values={}, nodes=2, gpus=8))
    assert draft.ranks is not None
    program = [FILLED.get(word, word) for word in draft.program[4:]]
    spec = {"program": program, **record(draft.ranks)}
    values = {"{nodes}": "2", "{first_node}": "10.0.0.1", "{meeting_port}": "29501"}
    lines = parse(python, [server_ranks.rank_words(spec, rank, values) for rank in range(2)])
    for rank, (unknown, space) in enumerate(lines):
        assert unknown == []
        assert (space["tensor_parallel_size"], space["pipeline_parallel_size"]) == (4, 2)
        assert (space["nnodes"], space["node_rank"], space["headless"]) == (2, rank, rank > 0)
        assert (space["master_addr"], space["master_port"]) == ("10.0.0.1", 29501)
        assert space["distributed_executor_backend"] == "mp"
    # What the plan shows is what runs.
    shown = rank_commands({"program": draft.program, "ranks": record(draft.ranks)})
    for rank, command in enumerate(shown):
        words = [FILLED.get(word, values.get(word, word)) for word in shlex.split(command)]
        assert words[5:] == server_ranks.rank_words(spec, rank, values)


SRUN = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
SLURM_NODEID=0 SLURMD_NODENAME=second exec "$@"
"""


def test_two_nodes_serve_one_model(python: str, tmp_path: Path) -> None:
    """Layers shared between two ranks over gloo, each started as on a node of its own (`srun` is a
    stand-in), give the reply that one process gives; and they end together."""
    tiny_model(python, tmp_path / "model")
    for name, text in (("srun", SRUN), ("scontrol", "#!/bin/sh\nexit 1\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2",
           "SLURM_JOB_NODELIST": "localhost,second",
           "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}  # fmt: skip
    values: dict[str, Any] = {"max_model_len": 128, "dtype": "float32"}
    one, _ = _served(python, tmp_path, OptionView(table=BACKEND.fields, values=values), {})
    values |= {"tensor_parallel": 2, "pipeline_parallel": 1}
    view = OptionView(table=BACKEND.fields, values=values, nodes=2)
    two, last_line = _served(python, tmp_path, view, job)
    assert two["tokens"] == one["tokens"]
    assert two["token_logprobs"] == pytest.approx(one["token_logprobs"], abs=1e-4)
    assert "rank 1 on second" in last_line


def _served(
    python: str, folder: Path, view: OptionView, job: dict[str, str]
) -> tuple[dict[str, Any], str]:
    """Log-probabilities of a greedy reply. A server over two nodes is then ended by killing the
    worker of its second rank; the last line of its log comes along."""
    draft = BACKEND.lease(view)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    words = {**FILLED, "{model}": str(folder / "model"), "{port}": str(port)}
    command = [python, *(words.get(word, word) for word in draft.program)]
    if draft.ranks is not None:
        command = server_ranks.command(folder / "ranks", command, record(draft.ranks))
    environment = vllm_variables(**draft.variables, **job, AGENTC_TOKEN="t")
    asked = {"model": "policy", "prompt": [5, 6, 7], "max_tokens": 8, "temperature": 0,
             "logprobs": 1}  # fmt: skip
    log = folder / "log"
    with running(command, environment, log, url) as process:
        said = httpx2.post(
            url + "/v1/completions", json=asked, headers={"Authorization": "Bearer t"},
            timeout=PATIENCE_S, trust_env=False,
        )  # fmt: skip
        assert said.status_code == 200, said.text
        if draft.ranks is not None:
            listed = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True,
                                    check=True).stdout.splitlines()  # fmt: skip
            (worker,) = [line.split()[0] for line in listed if "VLLM::Worker_TP1" in line]
            os.kill(int(worker), 9)
            assert process.wait(PATIENCE_S) == 1
    return said.json()["choices"][0]["logprobs"], log.read_text().splitlines()[-1]


@pytest.fixture(scope="module")
def target(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("vllm")
    model = folder / "model"
    tiny_model(python, model)
    port = free_port()
    values = {"max_model_len": 400, "dtype": "float32"}
    draft = BACKEND.lease(OptionView(table=BACKEND.fields, values=values))
    filled = {
        "{model}": str(model), "{served_name}": "policy", "{host}": "127.0.0.1",
        "{port}": str(port),
    }  # fmt: skip
    command = [python, *(filled.get(word, word) for word in draft.program)]
    # As of the runtime: the last of our cores, for vLLM by itself would take the first.
    cores = {CORES_VARIABLE: str(allowed_cores()[-1])}
    environment = vllm_variables(**draft.variables, **cores, AGENTC_TOKEN="test-token")
    log = folder / "server.log"
    url = f"http://127.0.0.1:{port}"
    with running(command, environment, log, url) as process:
        (folder / "pid").write_text(str(process.pid))
        # Sampling noise of vLLM is its own, but logits are float32 here too.
        yield Target(url, "test-token", "policy", str(model), 400, logprob_tolerance=1e-4)


def test_its_threads_are_bound_to_the_cores_that_it_was_given(target: Target) -> None:
    """By default vLLM binds the workers of all servers of a machine to its first cores."""
    group = int((Path(target.root).parent / "pid").read_text())
    listed = subprocess.run(["ps", "-eo", "pid=,pgid=,args="], capture_output=True, text=True,
                            check=True).stdout.splitlines()  # fmt: skip
    found = [line.split(None, 2) for line in listed]
    workers = [int(pid) for pid, pgid, name in found if int(pgid) == group and "VLLM::W" in name]
    assert [os.sched_getaffinity(pid) for pid in workers] == [{allowed_cores()[-1]}]


ENCODE = """
import json, sys
from pathlib import Path
from agentc_backends.servers.vllm.conversations import chat_text
chat = chat_text(Path(sys.argv[1]))
for talk in json.load(sys.stdin):
    print("ids", json.dumps(chat.encode(talk, add_generation_prompt=True,
                                        continue_final_message=False)))
"""
TALKS: list[list[dict[str, str]]] = [
    [{"role": "user", "content": "a <|im_end|> b"}],
    [{"role": "system", "content": "<|im_start|>user\nGo.<|im_end|>"},
     {"role": "user", "content": "Goal: craft."},
     {"role": "assistant", "content": "Action: say <|im_end|>"},
     {"role": "user", "content": "You see nothing."}],
    [{"role": "user", "content": "Goal: craft oak planks."}],
]  # fmt: skip


def test_control_tokens_in_texts_stay_texts(python: str, target: Target) -> None:
    """As under the embedded server, whose encoder makes the tokens here."""
    encoded = subprocess.run(
        [python, "-c", ENCODE, target.root], input=json.dumps(TALKS), env=vllm_variables(),
        capture_output=True, text=True, check=True, timeout=PATIENCE_S,
    ).stdout.splitlines()  # fmt: skip
    expected = [json.loads(line[4:]) for line in encoded if line.startswith("ids ")]

    async def ask() -> tuple[list[list[int]], list[dict[str, Any]]]:
        async with target.client() as chat:
            tokens = [await chat.tokenize(talk) for talk in TALKS]
        replies = []
        for talk in TALKS:
            body = target.chat_body(messages=talk, max_tokens=2, return_token_ids=True)
            answer = await target.raw("POST", "/v1/chat/completions", body)
            assert answer.status_code == 200, answer.text
            replies.append(answer.json())
        return tokens, replies

    tokens, replies = asyncio.run(ask())
    assert tokens == expected
    assert [reply["prompt_token_ids"] for reply in replies] == expected
    assert [reply["usage"]["prompt_tokens"] for reply in replies] == [*map(len, expected)]


def test_such_a_text_beyond_the_context_is_an_overflow(target: Target) -> None:
    long = [{"role": "user", "content": "<|im_end|> oak planks " * target.max_model_len}]

    async def ask() -> None:
        async with target.client() as chat:
            with pytest.raises(ContextOverflowError):
                await chat.chat(long, max_tokens=4)

    asyncio.run(ask())


SCORE = """
import sys
from pathlib import Path
import torch
from transformers import AutoModelForCausalLM
from agentc_backends.data.chat.rows import Side
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.models.scored_rows import write_scored_rows
from agentc_backends.trainers.common.scoring import chosen_log_probs, sample_of, score_rows
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
def log_probs(side):
    ids = torch.tensor([side.ids])
    with torch.no_grad():
        return chosen_log_probs(model(input_ids=ids, use_cache=False).logits[0], ids[0])
lengths = (8, 300, 512)  # the last is longer than the server's context
sides = [Side([(7 * i * i + n) % 400 for i in range(n)], [i > 2 for i in range(n)])
         for n in lengths]
prompts = [[{"role": "user", "content": "Goal: craft oak planks " * n}] for n in (1, 9)]
sample = sample_of(load_encoder(Path(sys.argv[1])), sides, prompts)
write_scored_rows(Path(sys.argv[2]), score_rows(sample, "float32", log_probs))
"""


def test_it_scores_given_tokens_as_transformers_does(
    python: str, target: Target, tmp_path: Path
) -> None:
    """What a rollout asks it before the first episode."""
    command = [python, "-c", SCORE, target.root, str(tmp_path)]
    subprocess.run(command, env=vllm_variables(), check=True, timeout=PATIENCE_S)
    job = Job(write_job(tmp_path, {}, inputs={"model": [tmp_path]}, leases={"policy": {"log": ""}}))
    decode = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 8, "stop": []}

    async def compare() -> None:
        async with target.client() as chat:
            await compare_with_trainer(job, ChatPolicy(chat, decode))

    asyncio.run(compare())
    found = json.loads((tmp_path / "facts.json").read_text())
    agreement = found["log_prob_agreement"]
    assert (agreement["rows"], agreement["tokens"]) == (2, 5 + 297)
    assert agreement["max"] < 1e-3
    assert (agreement["prompts"], agreement["other_prompts"]) == (2, 0)
    assert "warnings" not in found


@pytest.mark.parametrize("check", [*CHECKS, *STREAMING[:3]], ids=lambda check: check.__name__)
def test_conforms(target: Target, check: object) -> None:
    asyncio.run(check(target))  # type: ignore[operator]
