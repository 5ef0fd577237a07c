"""Runs an environment's server for a person until it is stopped: its software built on first use,
checked as a job's would be; and the first turn of an episode as lines of curl."""

from __future__ import annotations

import json
import os
import shlex
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc.backend_api import LeaseDraft
from agentc.runtime.machine import process
from agentc.runtime.machine.output_filters import Redactor
from agentc.runtime.machine.supervise import Supervisor
from agentc.runtime.servers.job_leases import asker_secrets
from agentc.runtime.servers.server_group import dead, death_message, end_all, start_all
from agentc.runtime.servers.server_process import ServerProcess
from agentc.runtime.software import job_software
from agentc.runtime.software.lock_text import lock_digest
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.plan_file import module_of
from agentc.serving.entry import EnvironmentEntry

PORT_TAKEN = ("address already in use", "errno 98")


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server of a person listens, with which token ("": none); port 0: a free one."""

    host: str
    port: int
    token: str


@dataclass(frozen=True, slots=True)
class Hosted:
    """A running server that is what it should be. `wait` returns why it ended by itself; told to
    stop, it raises StoppedError."""

    url: str
    log: Path
    ready_s: float
    identity: Mapping[str, Any]
    wait: Callable[[], str]


@contextmanager
def hosted(
    entry: EnvironmentEntry,
    address: Address,
    layout: StoreLayout,
    folder: Path,
    report: Callable[[str], None],
) -> Iterator[Hosted]:
    """The entry's server, with all that it started ended when the block is left.

    Raises LeaseError, SoftwareError, StoppedError, OSError.
    """
    draft, lock = entry.lease, entry.software.text
    asked = {role: _spec(each) for role, each in entry.asked.items()}
    wanted = {**draft.secrets, **asker_secrets(list(asked.values()))}
    secrets = job_software.resolve_secrets(wanted, sent=True)
    mark = process.mark(f"env-serve/{os.getpid()}", str(folder))
    with Supervisor(mark, Redactor(list(secrets.values()))) as supervisor:
        digest = lock_digest(lock)
        with supervisor.interruptible():
            built, record = job_software.ensure_software(layout, digest, lock, report)
        code = job_software.code_directory(layout, [module_of(draft.program)])
        variables = job_software.job_variables(
            code, os.cpu_count() or 1, False, secrets, job_software.programs_of(built, record)
        )
        variables.setdefault("AGENTC_SPEC_DIR", str(entry.directory.absolute()))
        (folder / "logs").mkdir()

        def leased(spec: Mapping[str, Any]) -> ServerProcess:
            return ServerProcess(
                spec,
                python=job_software.python_command(built, record, layout.root, code),
                variables=variables,
                model=None,
                folder=folder,
                logs=folder / "logs",
            )

        lease = leased({**_spec(draft), "program": _bound(draft.program, address)})
        lease.token = address.token
        lease.needs = {role: leased(spec) for role, spec in asked.items()}
        start_all([*lease.needs.values(), lease], supervisor)

        def wait() -> str:
            supervisor.wait(lambda: dead([lease]) is not None)
            return death_message(lease)

        try:
            served = lease.account.get("served", {})
            yield Hosted(lease.url or "", lease.log, lease.ready_s, served, wait)
        finally:
            end_all([lease], supervisor)


def _bound(words: Sequence[str], address: Address) -> list[str]:
    """The last of two equal options wins, so a program that binds a port of its own choice takes
    the one that was asked for."""
    program = [*words]
    if address.port:
        program += ["--port", str(address.port)]
    if address.host != "127.0.0.1":
        program += ["--host", address.host]
    return program


def _spec(draft: LeaseDraft) -> dict[str, Any]:
    """The lease as a plan has it."""
    return {
        "role": draft.role,
        "backend": draft.backend,
        "program": [*draft.program],
        "settings": dict(draft.settings),
        "port": draft.port,
        "probe": draft.probe,
        "identity_check": draft.identity_check,
        "expect": dict(draft.expect),
        "url": draft.url,
        "client": dict(draft.client),
        "served_name": draft.served_name,
        "secrets": dict(draft.secrets),
        "variables": dict(draft.variables),
        "ready_timeout_s": draft.ready_timeout_s,
        "silence_s": draft.silence_s,
        "causes": [*draft.causes],
        "noise": [*draft.noise],
    }


_PATIENCE_S = 10.0


def episode_lines(url: str, token: str) -> list[str]:
    """Lines for a shell that begin a session, start a task and act once; of a server that does not
    say what tasks it has, the one that asks it for its account."""
    try:
        told = _request(url, token, "/meta", None)
        task = next(tasks[0] for tasks in told["splits"].values() if tasks)
        action = _first_action(url, token, told, task)
        number = _next_number(url, token)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, StopIteration):
        return [_curl(url, token, "/meta", None)]
    return list(_turn(url, token, number, task, action))


def _turn(url: str, token: str, number: int, task: str, action: str) -> Iterator[str]:
    yield _curl(url, token, "/create", {})
    yield _curl(url, token, "/reset", {"id": number, "task_id": task})
    yield _curl(url, token, "/step", {"id": number, "action": action})


def _next_number(url: str, token: str) -> int:
    """What the next session will be called: they are counted, and one of ours is closed again."""
    ours = int(_request(url, token, "/create", {})["id"])
    _request(url, token, "/close", {"id": ours})
    return ours + 1


def _first_action(url: str, token: str, told: Mapping[str, Any], task: str) -> str:
    if "expert" in told["capabilities"]:
        steps = _request(url, token, "/expert", {"task_id": task})["steps"]
        if steps:
            return str(steps[0]["action"])
    return "help"


def _request(url: str, token: str, route: str, body: Mapping[str, Any] | None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + route, data=data)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
        return json.load(answer)


def _curl(url: str, token: str, route: str, body: Mapping[str, Any] | None) -> str:
    header = f"-H 'Authorization: Bearer {token}' " if token else ""
    data = "" if body is None else " -d " + shlex.quote(json.dumps(body, ensure_ascii=False))
    return f"curl -s {header}{url}{route}{data}"
