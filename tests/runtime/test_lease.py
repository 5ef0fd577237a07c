"""Servers of a job: readiness, identity, ports, death, and the end of every process."""

from __future__ import annotations

import json
import mmap
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.patience import NEVER_S, PATIENCE_S, wait_for
from tiny_plan import TinyPlan

from agentc.runtime.servers.server_process import ServerProcess


@pytest.fixture
def rollout(plan: TinyPlan) -> TinyPlan:
    """A plan with a published checkpoint to serve."""
    plan.job("model", "checkpoint.py", kind="sft", produces="Checkpoint")
    assert plan.run("model").returncode == 0
    return plan


@pytest.mark.parametrize("port", ["chosen", "held"])
def test_program_talks_to_the_checked_server(rollout: TinyPlan, port: str) -> None:
    lease = rollout.lease(port=port)
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease], call=True)
    done = rollout.run("act")
    assert done.returncode == 0, done.stderr
    (described,) = rollout.manifest("act")["leases"]
    assert described["role"] == "policy"
    assert described["ready_s"] > 0
    assert "logs/policy.log" in rollout.manifest("act")["files"]


@pytest.mark.parametrize("port", ["chosen", "held"])
def test_server_is_told_to_listen_for_this_machine_alone(rollout: TinyPlan, port: str) -> None:
    lease = rollout.lease(port=port, arguments=["--host", "{host}"])
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease], call=True)
    assert rollout.run("act").returncode == 0
    log = rollout.store / "objects" / rollout.object("act") / "logs" / "policy.log"
    assert log.read_text() == "serving on 127.0.0.1\n"


def test_server_has_the_variables_of_its_lease_with_their_placeholders_filled(
    rollout: TinyPlan,
) -> None:
    lease = rollout.lease(
        variables={"TINY_ADDRESS": "http://{host}/{served_name}"},
        arguments=["--show", "TINY_ADDRESS"],
    )
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease], call=True)
    assert rollout.run("act").returncode == 0
    log = rollout.store / "objects" / rollout.object("act") / "logs" / "policy.log"
    assert log.read_text() == "TINY_ADDRESS=http://127.0.0.1/policy\nserving on 127.0.0.1\n"


def test_server_that_forks_daemons_leaves_none(rollout: TinyPlan) -> None:
    lease = rollout.lease(arguments=["--fork", str(rollout.outlived)])
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease], call=True)
    assert rollout.run("act").returncode == 0


def test_dead_server_fails_the_job_with_its_last_words(rollout: TinyPlan) -> None:
    lease = rollout.lease(arguments=["--die-after-calls", "3"])
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease], call=True, rows=500, delay=0.1)
    process = rollout.start("act")
    log = rollout.staging("act") / "logs" / "policy.log"
    wait_for(lambda: log.exists() and "fell off the bus" in log.read_text())
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert "the policy server (serve.tiny) exited with 134" in said
    assert "fell off the bus" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (
            "--sick-after-calls",
            'is broken: GET /health answers 503 {"error": "the engine is dead"}',
        ),
        ("--hang-after-calls", "hangs: for "),
    ],
)
def test_server_that_serves_no_more_fails_the_job_though_it_lives(
    rollout: TinyPlan, argument: str, words: str
) -> None:
    """Its client is kept waiting meanwhile: it would have patience for ever."""
    lease = rollout.lease(arguments=[argument, "2"], silence_s=1.0)
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease], call=True, rows=9999, delay=0.1)
    done = rollout.run("act")
    assert done.returncode == 1
    assert f"the policy server (serve.tiny) {words}" in done.stderr
    assert "serving on 127.0.0.1" in done.stderr


def test_server_that_dies_at_once_shows_its_last_words(rollout: TinyPlan) -> None:
    lease = rollout.lease(arguments=["--die-at-once"])
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease])
    done = rollout.run("act")
    assert done.returncode == 1
    assert "exited with 3" in done.stderr
    assert "no such device" in done.stderr


def run_given_up(plan: TinyPlan, lease: dict[str, Any], reason: str) -> str:
    """What is said when the server is given up for that reason; a machine that takes longer to
    start its process than the server has gives it more."""
    for seconds in (1, 8, 64):
        lease["ready_timeout_s"] = float(seconds)
        done = plan.run("act")
        assert done.returncode == 1
        assert f"was not ready within {seconds} s" in done.stderr
        if reason in done.stderr:
            break
    return done.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--never-ready"], "GET /health answers 503"),
        (["--start-delay", str(NEVER_S)], "it has not written its ready file"),
    ],
)
def test_late_server_is_given_up_with_the_reason(
    rollout: TinyPlan, arguments: list[str], reason: str
) -> None:
    lease = rollout.lease(arguments=arguments)
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease])
    assert reason in run_given_up(rollout, lease, reason)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not tell")
def test_what_a_server_waits_for_a_core_is_not_held_against_it(rollout: TinyPlan) -> None:
    """It waits for longer than it has, before it is ready. A machine that keeps others waiting too
    (who asks it, who answers for it) gives it more, of which as much goes in waiting."""
    lease = rollout.lease(arguments=["--crowded", "0"])
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease])
    for seconds in (2, 16, 64):
        lease["ready_timeout_s"] = float(seconds)
        lease["program"][-1] = str(1.5 * seconds)
        done = rollout.run("act")
        if "was not ready within" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    (described,) = rollout.manifest("act")["leases"]
    assert described["ready_s"] > seconds


@pytest.mark.parametrize("route", ["/create", "/reset", "/close"])
def test_an_environment_that_is_stuck_is_given_up_in_time(plan: TinyPlan, route: str) -> None:
    lease = plan.lease("environment", arguments=["--stuck-route", route])
    plan.job("act", leases=[lease])
    reason = f"{route} (timed out)"
    assert reason in run_given_up(plan, lease, reason)


def test_an_environment_reads_its_settings_as_data(plan: TinyPlan) -> None:
    """Nothing in them is filled, whatever it looks like."""
    settings = {"depth": 2, "words": ["a b", "{port}"], "limit": None, "splits": [["z", {}]]}
    lease = plan.lease("environment", arguments=["--settings", "{settings}"], settings=settings)
    plan.job("act", leases=[{**lease, "expect": settings}])
    assert plan.run("act").returncode == 0
    (described,) = plan.manifest("act")["leases"]
    assert described["served"] == settings


def test_wrong_model_is_refused(rollout: TinyPlan, tmp_path: Path) -> None:
    lease = rollout.lease()
    lease["program"] = [w.replace("{model}", str(tmp_path)) for w in lease["program"]]
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease])
    done = rollout.run("act")
    assert done.returncode == 1
    assert f"serves the wrong model: {tmp_path}" in done.stderr


def test_wrong_served_name_is_refused(rollout: TinyPlan) -> None:
    lease = rollout.lease()
    lease["program"] = [w.replace("{served_name}", "gpt") for w in lease["program"]]
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease])
    assert "serves 'gpt'; expected a model named 'policy'" in rollout.run("act").stderr


def test_server_that_cannot_complete_is_refused(rollout: TinyPlan) -> None:
    lease = rollout.lease(arguments=["--no-completions"])
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease])
    assert "cannot complete one token" in rollout.run("act").stderr


def test_environment_must_be_the_declared_one(plan: TinyPlan) -> None:
    identity = ["--identity", json.dumps({"name": "craft", "recipes": "abc"})]
    right = plan.lease("environment", arguments=identity, expect={"recipes": "abc"})
    wrong = plan.lease("environment", arguments=identity, expect={"recipes": "xyz"})
    plan.job("right", leases=[right])
    plan.job("wrong", leases=[wrong])
    done = plan.run("right")
    assert done.returncode == 0, done.stderr
    served = plan.manifest("right")["leases"][0]["served"]
    assert served == {"name": "craft", "recipes": "abc"}
    assert "recipes: expected xyz, found abc" in plan.run("wrong").stderr


@pytest.mark.slow
def test_deaf_server_is_killed_after_the_grace(rollout: TinyPlan) -> None:
    lease = rollout.lease(arguments=["--deaf"])
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease], rows=1)
    began = time.monotonic()
    assert rollout.run("act").returncode == 0
    assert time.monotonic() - began > 5


def test_stolen_port_is_replaced_by_another(rollout: TinyPlan, tmp_path: Path) -> None:
    """The server finds its port taken at the first start, as if another program had been
    faster; the runtime holds another port and starts it again."""
    count = tmp_path / "starts"
    thief = tmp_path / "thief.py"
    server = Path(__file__).parents[1] / "support" / "programs" / "server.py"
    thief.write_text(
        "import pathlib, runpy, sys\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "with count.open('a') as out: out.write('x')\n"
        "if count.read_text() == 'x':\n"
        "    sys.exit('OSError: [Errno 98] Address already in use')\n"
        f"runpy.run_path({str(server)!r}, run_name='__main__')\n"
    )
    lease = rollout.lease(port="held")
    lease["program"][0] = str(thief)
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease], call=True)
    done = rollout.run("act")
    assert done.returncode == 0, done.stderr
    assert count.read_text() == "xx"


WORKER = """
import mmap, sys, time
held = bytearray(96 << 20)
file = open(sys.argv[1], "w+b")
file.truncate(4096)
shared = mmap.mmap(file.fileno(), 4096)
while time.process_time() < 1.0: pass
print("ready", flush=True)
time.sleep(6000)
"""


def test_a_servers_workers_are_counted_and_leave_no_shared_memory(
    rollout: TinyPlan, tmp_path: Path
) -> None:
    """They are killed and nobody waits for them, as those of vLLM."""
    server = Path(__file__).parents[1] / "support" / "programs" / "server.py"
    shared, other = (Path(f"/dev/shm/agentc-test-{os.getpid()}-{name}") for name in ("a", "b"))
    program = tmp_path / "with_worker.py"
    program.write_text(
        "import mmap, runpy, subprocess, sys\n"
        f"words = [sys.executable, '-c', {WORKER!r}, {str(shared)!r}]\n"
        "worker = subprocess.Popen(words, stdout=subprocess.PIPE)\n"
        "worker.stdout.readline()\n"
        f"file = open({str(other)!r}, 'r+b')\n"
        "held = mmap.mmap(file.fileno(), 4096)\n"
        f"runpy.run_path({str(server)!r}, run_name='__main__')\n"
    )
    lease = rollout.lease()
    lease["program"][0] = str(program)
    rollout.job("act", inputs={"model": ["model"]}, leases=[lease], call=True)
    try:
        with other.open("w+b") as file:
            file.truncate(4096)
            with mmap.mmap(file.fileno(), 4096):
                done = rollout.run("act")
        assert done.returncode == 0, done.stderr
        (described,) = rollout.manifest("act")["leases"]
        assert described["cpu_s"] > 1.0
        assert described["max_rss_mb"] > 96
        assert not shared.exists()
        assert other.exists(), "another process had it mapped"
    finally:
        for path in (shared, other):
            path.unlink(missing_ok=True)


def test_held_ports_are_not_given_to_others(plan: TinyPlan, tmp_path: Path) -> None:
    """While the lease holds a port nobody who asks for a free one gets it, and the server that
    names it does."""
    from agentc.runtime.servers.server_process import ServerProcess

    folder = tmp_path / "logs"
    folder.mkdir()
    lease = ServerProcess(
        plan.lease(port="held"), python=[], variables={}, model=None, folder=tmp_path, logs=folder
    )
    port = lease._hold_port()
    taken = []
    for _ in range(500):
        other = socket.socket()
        other.bind(("127.0.0.1", 0))
        taken.append(other)
    assert port not in {other.getsockname()[1] for other in taken}
    server = socket.create_server(("127.0.0.1", port))
    assert server.getsockname()[1] == port
    lease.release_port()
    for each in [server, *taken]:
        each.close()


def test_remote_endpoint_gets_its_secret_by_variable(plan: TinyPlan, tmp_path: Path) -> None:
    """Nothing is started for a remote endpoint; its key goes to the program as a variable."""
    server = Path(__file__).parents[1] / "support" / "programs" / "server.py"
    ready = tmp_path / "ready.json"
    process = subprocess.Popen(
        [sys.executable, str(server), "--ready-file", str(ready), "--name", "big"],
        env={**os.environ, "AGENTC_TOKEN": "the-remote-key"},
    )
    try:
        wait_for(ready.exists)
        address = json.loads(ready.read_text())
        lease = plan.lease(
            port="none",
            url=f"http://127.0.0.1:{address['port']}/v1",
            software=None,
            program=[],
            probe="",
            input=None,
            served_name="big",
            secrets={"OPENAI_API_KEY": "MY_REMOTE_KEY"},
        )
        plan.job("act", leases=[lease], rows=1, echo=["OPENAI_API_KEY"])
        done = plan.run("act", MY_REMOTE_KEY="the-remote-key")
        assert done.returncode == 0, done.stderr
        log = plan.store / "objects" / plan.object("act") / "logs" / "log.txt"
        assert "OPENAI_API_KEY = [redacted]" in log.read_text()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("host", "url"), [("node7", "http://node7:80"), ("fd00::7", "http://[fd00::7]:80")]
)
def test_the_address_of_an_ipv6_host_stands_in_brackets(
    tmp_path: Path, host: str, url: str
) -> None:
    spec = {"role": "policy", "backend": "serve.mine"}
    lease = ServerProcess(
        spec, python=[], variables={}, model=None, folder=tmp_path, logs=tmp_path, host=host
    )
    assert not lease.read_ready_file()
    lease._ready_file.write_text(json.dumps({"host": host, "port": 80}))
    assert lease.read_ready_file()
    assert lease.url == url
    assert urlsplit(url).hostname == host
