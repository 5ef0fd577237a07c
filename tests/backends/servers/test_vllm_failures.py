"""Why a vLLM server failed, read out of logs of real starts (`vllm_logs`, vLLM 0.32 on a CPU): each
was recorded with a checkpoint, a setting or a signal that makes it fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.runtime.servers.server_log import describe_log, size_of
from agentc.runtime.servers.server_process import ServerProcess
from agentc_backends.servers.vllm.backend import CAUSES, NOISE

LOGS = Path(__file__).parent / "vllm_logs"
SPEC = {"causes": CAUSES, "noise": NOISE}
CAUSE = {
    # `cpu_kv_cache_gb: 640`.
    "memory": "ValueError: Available memory on node 0 (14.76/17.59 GiB) on kv cache allocation is "
    "less than requested memory for kv (640.0 GiB). Decrease --kv-cache-memory-bytes, "
    "VLLM_CPU_KVCACHE_SPACE, or reduce CPU memory used by other processes.",
    # `max_model_len: 100000`.
    "context": "Value error, User-specified max_model_len (100000) is greater than the derived "
    "max_model_len (max_position_embeddings=512.0",
    # A config.json of another model.
    "shape": "RuntimeError: start (0) + length (256) exceeds dimension size (128).",
    "port": "OSError: [Errno 98] Address already in use",
    # Killed by signal 9, one each: the engine, the worker.
    "engine": "EngineDeadError: EngineCore encountered an issue",
    "worker": "Worker proc VllmWorker-0 died unexpectedly",
}


@pytest.mark.parametrize("name", CAUSE)
def test_the_cause_is_told(name: str) -> None:
    told = describe_log(LOGS / f"{name}.log", SPEC)
    assert told.startswith(f": {CAUSE[name]}"), told[:500]
    assert not any(word in told for word in ("nanobind", "leaked", "Route:", "Traceback"))
    assert len(told) < 4000


def test_the_cause_is_that_of_this_start(tmp_path: Path) -> None:
    log = tmp_path / "policy.log"
    log.write_bytes((LOGS / "memory.log").read_bytes())
    begins = size_of(log)
    with log.open("ab") as out:
        out.write((LOGS / "engine.log").read_bytes())
    assert describe_log(log, SPEC, begins).startswith(f": {CAUSE['engine']}")
    assert describe_log(log, SPEC).startswith(f": {CAUSE['memory']}")


def test_a_port_that_was_taken_is_recognised_in_this_start(tmp_path: Path) -> None:
    spec = {"role": "policy", "backend": "serve.vllm", "port": "held"}
    server = ServerProcess(
        spec, python=[], variables={}, model=None, folder=tmp_path, logs=tmp_path
    )
    server.log.write_bytes((LOGS / "port.log").read_bytes())
    assert server.port_was_taken()
    server.log_begins = size_of(server.log)
    with server.log.open("ab") as out:
        out.write((LOGS / "memory.log").read_bytes())
    assert not server.port_was_taken()
