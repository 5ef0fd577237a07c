"""serve.vllm: its flags against vLLM's own parser, and a real server against the shared checks.

Needs the vllm software environment: that of the store, or the interpreter in AGENTC_VLLM_PYTHON.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentc.backend_api import OptionView
from agentc_backends.software import VLLM
from agentc_backends.vllm_server.backend import BACKEND
from conformance import CHECKS, ROOT, Target

pytestmark = [pytest.mark.slow, pytest.mark.vllm]
FLIPPED: dict[str, Any] = {
    "max_model_len": 256, "dtype": "bfloat16", "quantization": "awq", "kv_cache_dtype": "fp8",
    "seed": 7, "trust_remote_code": True, "enable_prefix_caching": False, "enforce_eager": True,
    "enable_chunked_prefill": True,
    "tensor_parallel": 2, "pipeline_parallel": 2, "gpu_memory_utilization": 0.5,
    "max_num_seqs": 8, "max_num_batched_tokens": 512, "cpu_offload_gb": 1.5,
}  # fmt: skip
PARSE = """
import json, sys
from agentc_backends.vllm_server.job_serve import alias_distribution
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
    given = os.environ.get("AGENTC_VLLM_PYTHON")
    lock = hashlib.sha256(VLLM.lock.encode()).hexdigest()[:16]
    store = Path(os.environ.get("AGENTC_STORE", ROOT / ".agentc" / "store"))
    place = Path(given) if given else store / "environments" / lock / "bin" / "python"
    if not place.exists():
        pytest.skip(f"the vllm environment is not built ({place}); set AGENTC_VLLM_PYTHON")
    return str(place)


def variables(**more: str) -> dict[str, str]:
    paths = os.pathsep.join(str(ROOT / name) for name in ("compiler", "backends"))
    base = {k: v for k, v in os.environ.items() if not k.startswith("VLLM_")}
    return {**base, "PYTHONPATH": paths, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **more}


def words_of(**values: Any) -> list[str]:
    """Arguments after `serve MODEL`, with placeholders filled in."""
    program = BACKEND.lease(OptionView(table=BACKEND.fields, values=values)).program
    filled = {"{served_name}": "policy", "{host}": "127.0.0.1", "{port}": "8000"}
    return [filled.get(word, word) for word in program[4:]]


def test_every_flag_is_one_of_vllms_own(python: str) -> None:
    cases = [words_of(), *(words_of(**{name: value}) for name, value in FLIPPED.items())]
    done = subprocess.run(
        [python, "-c", PARSE], input=json.dumps(cases), env=variables(), capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[[")]
    assert len(lines) == len(cases)
    assert all(unknown == [] for unknown, _ in lines)
    (_, plain), *flipped = lines
    for name, (_, space) in zip(FLIPPED, flipped, strict=True):
        changed = {key for key in space if space[key] != plain.get(key)}
        assert len(changed) == 1, (name, changed)


@pytest.fixture(scope="module")
def target(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("vllm")
    maker = ROOT / "tests" / "torch" / "transformers_server" / "tiny_models.py"
    model = folder / "model"
    subprocess.run([python, str(maker), "llama-wide", str(model)], env=variables(), check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    values = {"max_model_len": 400, "dtype": "float32", "enforce_eager": True}
    draft = BACKEND.lease(OptionView(table=BACKEND.fields, values=values))
    filled = {
        "{model}": str(model), "{served_name}": "policy", "{host}": "127.0.0.1",
        "{port}": str(port),
    }  # fmt: skip
    command = [python, *(filled.get(word, word) for word in draft.program)]
    environment = variables(**draft.environment_variables, AGENTC_TOKEN="test-token")
    log = folder / "server.log"
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, env=environment, stdout=out, stderr=out, cwd=folder, start_new_session=True
        )
    try:
        _await_health(url, process, log)
        # Sampling noise of vLLM is its own, but logits are float32 here too.
        yield Target(url, "test-token", "policy", str(model), 400, logprob_tolerance=1e-4)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()


def _await_health(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 400
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            if httpx.get(url + "/health", timeout=5, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    pytest.fail(f"the server did not start:\n{log.read_text()[-4000:]}")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conforms(target: Target, check: object) -> None:
    asyncio.run(check(target))  # type: ignore[operator]
