"""The engine's process and the server live and die together, and the cause is told."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S
from tiny_models import CONFIGS, make_model

from agentc_backends import clients
from agentc_backends.servers.transformers.channel import Cancel, Loaded, Result, Unpacker, pack
from conformance import CONVERSATION, ROOT, Target, started

MODULE = "agentc_backends.servers.transformers.job_serve"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("llama"), CONFIGS["llama-gqa"])


def engine_of(server: int) -> int:
    (found,) = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return int(found)


def cpu_s(process: int) -> float:
    """Of all its threads."""
    each = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in each) / 1e9


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_messages_survive_any_division_into_pieces() -> None:
    said = [Loaded("/m", 512, 16, 400), Result(3, list(range(5000)), True, ()), Cancel(7)]
    data = pack(*said) * 3
    draw = random.Random(1)
    for _ in range(50):
        unpacker, heard, at = Unpacker(), [], 0
        while at < len(data):
            end = at + draw.choice([1, 7, 8, 9, 4000, 1 << 20])
            heard += unpacker.feed(data[at:end])
            at = end
        assert heard == said * 3


def test_a_killed_server_leaves_no_engine(folder: Path, tmp_path: Path) -> None:
    with started(sys.executable, MODULE, ["--model", str(folder)], tmp_path) as (_, process):
        engine = engine_of(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        wait_until(lambda: not Path(f"/proc/{engine}").exists())


def test_a_killed_engine_ends_the_server_with_its_cause(folder: Path, tmp_path: Path) -> None:
    with started(sys.executable, MODULE, ["--model", str(folder)], tmp_path) as (url, process):
        target = Target(url, "test-token", "policy", str(folder), 512)
        engine = engine_of(process.pid)

        async def ask_and_kill() -> object:
            async with target.client() as chat:
                endless = {"ignore_eos": True}
                reply = asyncio.create_task(chat.chat(CONVERSATION, max_tokens=400, extra=endless))
                used = cpu_s(engine)
                while cpu_s(engine) < used + 0.02:
                    await asyncio.sleep(0.001)
                os.kill(engine, signal.SIGKILL)
                return (await asyncio.gather(reply, return_exceptions=True))[0]

        assert isinstance(asyncio.run(ask_and_kill()), clients.InfrastructureError)
        assert process.wait(PATIENCE_S) == 1
    assert "the engine's process was ended by SIGKILL" in (tmp_path / "server.log").read_text()


def test_an_idle_server_ends_with_its_engine_too(folder: Path, tmp_path: Path) -> None:
    with started(sys.executable, MODULE, ["--model", str(folder)], tmp_path) as (_, process):
        os.kill(engine_of(process.pid), signal.SIGKILL)
        assert process.wait(PATIENCE_S) == 1


def test_what_the_engine_used_counts_as_the_server_s(folder: Path, tmp_path: Path) -> None:
    """And a signal to the group is no loss of the engine."""
    with started(sys.executable, MODULE, ["--model", str(folder)], tmp_path) as (url, process):
        target = Target(url, "test-token", "policy", str(folder), 512)

        async def ask() -> None:
            async with target.client() as chat:
                await chat.chat(CONVERSATION, max_tokens=100, extra={"ignore_eos": True})

        asyncio.run(ask())
        engine = engine_of(process.pid)
        used = cpu_s(process.pid) + cpu_s(engine)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert not Path(f"/proc/{engine}").exists()
    assert "engine's process" not in (tmp_path / "server.log").read_text()
    counted = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # The kernel counts time by the tick.
    assert counted > 0.9 * used


def test_an_error_in_the_engine_reaches_everyone_and_is_announced(folder: Path) -> None:
    program = """
        import asyncio, sys
        import numpy
        from agentc_backends.servers.transformers.channel import EngineTask
        from agentc_backends.engine.generation import EngineLimits
        from agentc_backends.servers.transformers.served_model import EngineClient
        from agentc_backends.servers.transformers.engine_process import EngineSettings

        settings = EngineSettings(
            path=sys.argv[1], dtype="float32", threads=1, limits=EngineLimits(), max_model_len=None
        )
        engine, loaded = EngineClient.start(settings, lambda: print("lost"))

        async def ask():
            await engine.connect()
            tokens = numpy.array([1, loaded.vocabulary + 1], dtype=numpy.int32)
            for _ in range(2):
                try:
                    await engine.run([EngineTask(prompt=tokens.tobytes(), max_tokens=4)] * 2)
                except Exception as error:
                    print(type(error).__name__, error)

        asyncio.run(ask())
    """
    paths = os.pathsep.join(str(ROOT / name) for name in ("compiler", "backends"))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(folder)],
        env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip
    ended = "EngineEndedError the engine's process ended with status 1"
    assert done.stdout.splitlines() == ["lost", ended, ended], done.stderr
    assert "IndexError" in done.stderr
