"""Environment servers in processes of their own, started as a job's lease would start them,
requests to them, and short walks through their episodes.

Actions of a walk are the expert's where there is one, words of the caller's, and nonsense, drawn
from the task's name only, so that a walk can be repeated anywhere.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from agentc.conformance.check import Fault, Skipped, demand
from agentc.runtime.machine.process import start
from agentc.runtime.servers.job_leases import fill_placeholders
from agentc.runtime.servers.server_log import last_lines
from agentc.runtime.servers.server_process import http_address
from agentc.runtime.software.job_software import code_directory, job_variables
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.plan_file import module_of

TOKEN = "conformance-token"
_LIMIT_S = 300.0
_GRACE_S = 20.0


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A status, and the decoded JSON (text where it is none)."""

    status: int
    content: Any

    @property
    def error(self) -> str | None:
        """What went wrong, as the protocol says it: in a 200, or by its status."""
        content = self.content
        if self.status == 200 and not (isinstance(content, dict) and "error" in content):
            return None
        return str(content.get("error", content) if isinstance(content, dict) else content)


class ServedEnvironment:
    """A running environment server, and what it says of itself."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url)
        self.meta: Mapping[str, Any] = {}

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = TOKEN,
        raw: bytes | None = None,
    ) -> HttpAnswer:
        """One request; `raw` is sent as the body in place of `body` as JSON. Raises Fault when
        there is no answer."""
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        host, port = self._address.hostname or "", self._address.port
        connection = http.client.HTTPConnection(host, port, timeout=_LIMIT_S)
        try:
            connection.request(method, path, body=data, headers=headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise Fault(f"{method} {path}: no answer ({error or type(error).__name__})") from None
        finally:
            connection.close()
        try:
            return HttpAnswer(answer.status, json.loads(text))
        except (ValueError, RecursionError):
            return HttpAnswer(answer.status, text.decode("utf-8", "replace"))

    def post(self, path: str, **body: object) -> Any:
        """The reply to a request that must succeed."""
        answer = self.send("POST", path, body)
        if answer.error is not None:
            raise Fault(f"POST {path} {_short(body)} answers {answer.status}: {answer.error[:200]}")
        return answer.content

    def get(self, path: str) -> Any:
        answer = self.send("GET", path)
        if answer.error is not None:
            raise Fault(f"GET {path} answers {answer.status}: {answer.error[:200]}")
        return answer.content


@contextmanager
def served(
    program: Sequence[str],
    python: Path,
    *,
    settings: Mapping[str, Any] | None = None,
    hash_seed: int = 0,
    extra: Sequence[str] = (),
    ready_timeout_s: float = _LIMIT_S,
) -> Iterator[ServedEnvironment]:
    """An environment server of its own; `extra` are further arguments of its program.

    Raises Fault when it does not come up, or does not end on SIGTERM.
    """
    with tempfile.TemporaryDirectory(prefix="agentc-conformance-") as name:
        folder = Path(name)
        ready, log = folder / "ready.json", folder / "log.txt"
        told = folder / "settings.json"
        told.write_text(json.dumps(settings or {}), encoding="utf-8")
        code = code_directory(StoreLayout(folder), [module_of(program)])
        variables = {**job_variables(code, 1, False, {}), "PYTHONHASHSEED": str(hash_seed)}
        places = {"{ready_file}": str(ready), "{settings}": str(told)}
        argv = fill_placeholders(
            [*program, *extra], {**places, "{host}": "127.0.0.1", "{port}": "0"}
        )
        with log.open("wb") as output:
            process = start(
                [str(python), *argv],
                cwd=str(folder),
                environment={**variables, "AGENTC_TOKEN": TOKEN},
                output=output.fileno(),
            )
        try:
            running = ServedEnvironment(_await_ready(process, ready, log, ready_timeout_s))
            running.meta = running.get("/meta")
            yield running
        finally:
            status = _end(process)
        if status != 0:
            raise Fault(f"when asked to stop, the server exits with {status}: {last_lines(log, 5)}")


def _await_ready(process: subprocess.Popen[bytes], ready: Path, log: Path, limit_s: float) -> str:
    deadline = time.monotonic() + limit_s
    while not ready.exists():
        if process.poll() is not None:
            output = last_lines(log, 5) or "it printed nothing"
            raise NotStartedError(process.returncode, f"the server does not start: {output}")
        if time.monotonic() > deadline:
            raise Fault(f"the server is not ready after {limit_s:g} s")
        time.sleep(0.02)
    address = json.loads(ready.read_text(encoding="utf-8"))
    if address["host"] not in ("127.0.0.1", "::1", "localhost"):
        raise Fault(f"the server listens on {address['host']}, not only on loopback")
    return http_address(str(address["host"]), int(address["port"]))


class NotStartedError(Fault):
    """The server's program ended before it was ready, with this status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _end(process: subprocess.Popen[bytes]) -> int:
    """The exit status after SIGTERM; whatever is left of its group is killed."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        status = process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        status = -int(signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return status


def _short(body: Mapping[str, object]) -> str:
    text = json.dumps(body)
    return text if len(text) <= 120 else text[:117] + "..."


NONSENSE = (
    "",
    " ",
    "xyzzy",
    "Action: xyzzy",
    "wörter, 漢字 and \U0001f680",
    "{}",
    "a " * 2000,
    "\x00\x07",
    "-1",
)
_WALK = 12
_MOST_TASKS = 4
Row: TypeAlias = list[Any]
"""[observation, reward, done] of one reply."""


def need(server: ServedEnvironment, capability: str) -> None:
    if capability not in server.meta["capabilities"]:
        raise Skipped(f"`{capability}` is not declared")


def reward_range(meta: Mapping[str, Any]) -> tuple[float, float]:
    match meta.get("reward_range"):
        case [int() | float() as low, int() | float() as high]:
            return float(low), float(high)
    raise Fault(f"/meta: `reward_range` is {meta.get('reward_range')!r}")


def tasks_of(server: ServedEnvironment) -> list[str]:
    return tasks_in(server.meta)


def tasks_in(meta: Mapping[str, Any]) -> list[str]:
    """A few tasks: the first and the last of every split, as far as they go."""
    ends = [task for part in meta["splits"].values() for task in (part[0], part[-1])]
    return list(dict.fromkeys(ends))[:_MOST_TASKS]


def expert_plan(server: ServedEnvironment, task: str) -> list[str]:
    return [str(step["action"]) for step in server.post("/expert", task_id=task, seed=0)["steps"]]


def words_for(server: ServedEnvironment, task: str, actions: Sequence[str]) -> list[str]:
    """The actions of a walk, drawn from the task's name: mostly the expert's, in order."""
    chance = random.Random(f"walk {task}")
    plan = expert_plan(server, task) if "expert" in server.meta["capabilities"] else []
    known = [*actions, *plan]
    words: list[str] = []
    for _ in range(_WALK):
        draw = chance.random()
        if plan and draw < 0.5:
            words.append(plan.pop(0))
        elif known and draw < 0.75:
            words.append(chance.choice(known))
        else:
            words.append(chance.choice(NONSENSE))
    return words


def open_session(server: ServedEnvironment) -> int:
    created = server.post("/create")
    number = created.get("id") if isinstance(created, dict) else created
    if not isinstance(number, int):
        raise Fault(f"/create answers {str(created)[:80]!r}, without a number")
    return number


def reset_to(server: ServedEnvironment, session: int, task: str, seed: int = 0) -> Row:
    return read_row(server.post("/reset", id=session, task_id=task, seed=seed))


def take_step(server: ServedEnvironment, session: int, action: str) -> Row:
    return read_row(server.post("/step", id=session, action=action))


def close_session(server: ServedEnvironment, session: int) -> None:
    server.post("/close", id=session)


def take_walk(server: ServedEnvironment, session: int, words: Sequence[str]) -> list[Row]:
    """What the actions gave, up to the end of the episode."""
    rows: list[Row] = []
    for word in words:
        rows.append(take_step(server, session, word))
        if rows[-1][2]:
            break
    return rows


def play(server: ServedEnvironment, task: str, words: Sequence[str]) -> list[Row]:
    """A whole walk in a session of its own; the first row is the reset's."""
    session = open_session(server)
    rows = [reset_to(server, session, task), *take_walk(server, session, words)]
    close_session(server, session)
    return rows


def read_row(content: Any) -> Row:
    """[observation, reward, done] of a reply."""
    match content:
        case {"observation": str(text), "reward": int() | float() as reward, "done": bool(done)}:
            return [text, float(reward), done]
    raise Fault(f"not an observation with reward and done: {str(content)[:120]}")


def episode_reward(kind: str, rewards: Sequence[float]) -> float:
    if not rewards:
        return 0.0
    return {"sum": sum(rewards), "max": max(rewards)}.get(kind, rewards[-1])


def demand_same(expected: Sequence[Row], found: Sequence[Row], where: str) -> None:
    for number, (one, other) in enumerate(zip_longest(expected, found)):
        demand(
            one == other, f"{where}: row {number} is {_row_text(other)}, expected {_row_text(one)}"
        )


def _row_text(row: Row | None) -> str:
    if row is None:
        return "missing"
    text, reward, done = row
    return f"[{text[:160]!r}, {reward:g}, {done}]"
