"""What a server must prove before a job starts, and its health while the job runs.

It answers, and it is the one of the plan: a model server must serve the checkpoint and complete one
token, or make features of one picture; an environment must be the one declared, and complete one
create, reset and close. `HealthWatch` notices a server that lives but is broken or hangs.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentc.lease_roles import is_model_server
from agentc.program.job import (
    OtherEnvironmentError,
    account_facts,
    check_planned,
    shortened,
)
from agentc.runtime.machine.output_filters import Redactor
from agentc.runtime.machine.process import seconds_without_core

if TYPE_CHECKING:
    from agentc.runtime.servers.server_process import ServerProcess
if TYPE_CHECKING:
    from agentc.runtime.servers.server_process import ServerProcess


_POLL_S = 0.05
_MOST_WAITING = 9
_LONGER = "; `start_minutes` of the server, in `servers:`, raises the limit"
_POINT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
"""A PNG of one pixel."""


class ProbeError(Exception):
    """The server is not usable, and waiting will not help."""


class NotReadyError(Exception):
    """The server does not answer yet."""


def await_ready(lease: ServerProcess, started: float, stop: threading.Event) -> None:
    """Return when the server is ready and checked. Raises ProbeError; returns early when
    `stop` is set. `started` is on the monotonic clock. What the server waits for a core of a busy
    machine is not counted against it, up to nine times its timeout."""
    timeout = float(lease.spec.get("ready_timeout_s") or 300.0)
    deadline = started + timeout
    reason = "it has not written its ready file"
    pause = _POLL_S
    while not stop.is_set():
        if time.monotonic() > deadline:
            # Looked up when it matters: it takes a walk through /proc.
            waited = min(_seconds_waiting(lease), _MOST_WAITING * timeout)
            deadline = started + timeout + waited
        if time.monotonic() > deadline:
            raise ProbeError(
                "the {} server ({}) was not ready within {:g} s: {}{}".format(
                    lease.role,
                    lease.spec["backend"],
                    timeout,
                    reason,
                    _LONGER if is_model_server(lease.role) else "",
                )
            )
        try:
            if lease.url is not None or lease.read_ready_file():
                _probe(lease, deadline)
                _check_identity(lease, deadline)
                return
        except NotReadyError as late:
            reason = str(late)
        stop.wait(pause)
        pause = min(pause * 1.2, 0.5)


def _seconds_waiting(lease: ServerProcess) -> float:
    return 0.0 if lease.child is None else seconds_without_core(lease.child.pid)


def request(
    lease: ServerProcess,
    method: str,
    path: str,
    body: Mapping[str, Any] | None,
    most_s: float,
    deadline: float,
) -> tuple[int, Any]:
    """One request to the server: status and decoded JSON (text when it is none). It takes `most_s`
    at most, and never much longer than until `deadline`.

    Raises NotReadyError when there is no answer.
    """
    timeout = min(most_s, deadline - time.monotonic())
    address = urlsplit(lease.url or "")
    secure = address.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(address.hostname or "127.0.0.1", address.port, timeout=max(timeout, 0.1))
    headers = {"Accept": "application/json"}
    token = _token(lease)
    if token:
        headers["Authorization"] = "Bearer " + token
    payload = None
    if body is not None:
        payload = json.dumps(body).encode("utf-8")
        headers["Content-Type"] = "application/json"
    try:
        connection.request(method, address.path.rstrip("/") + path, body=payload, headers=headers)
        answer = connection.getresponse()
        raw = answer.read()
        status = answer.status
    except (OSError, http.client.HTTPException) as error:
        raise NotReadyError(f"no answer from {lease.url}{path} ({error or repr(error)})") from None
    finally:
        connection.close()
    if lease.remote and token:
        # What it says stands in messages, cut short: a part of the key would not be recognised.
        raw = Redactor([token]).clean(raw)
    try:
        return status, json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return status, raw.decode("utf-8", "replace")


def _token(lease: ServerProcess) -> str:
    if not lease.remote:
        return lease.token
    names = list((lease.spec.get("secrets") or {}).values())
    return os.environ.get(names[0], "") if names else ""


def _probe(lease: ServerProcess, deadline: float) -> None:
    path = lease.spec.get("probe")
    if not path:
        return
    status, answer = request(lease, "GET", path, None, 5.0, deadline)
    if status != 200:
        raise NotReadyError(f"GET {path} answers {status}: {shortened(answer)}")
    # From here on the port is the server's own.
    lease.release_port()


def _check_identity(lease: ServerProcess, deadline: float) -> None:
    check = lease.spec.get("identity_check", "none")
    if check == "model":
        _check_model(lease, deadline)
    elif check == "features":
        _check_served(lease, deadline)
        _embed_a_point(lease, deadline)
    elif check == "environment":
        _check_environment(lease, deadline)


def _check_model(lease: ServerProcess, deadline: float) -> None:
    _check_served(lease, deadline)
    _complete_one_token(lease, deadline)


def _check_served(lease: ServerProcess, deadline: float) -> None:
    status, answer = request(lease, "GET", _versioned(lease, "/v1/models"), None, 10.0, deadline)
    if status != 200 or not isinstance(answer, dict):
        raise ProbeError(
            "the %s server answers GET /v1/models with %d: %s"
            % (lease.role, status, shortened(answer))
        )
    served = {entry.get("id"): entry for entry in answer.get("data") or []}
    name = lease.spec.get("served_name")
    entry = served.get(name)
    if entry is None:
        raise ProbeError(
            "the {} server serves {}; expected a model named {!r}".format(
                lease.role, ", ".join(repr(n) for n in served) or "no model", name
            )
        )
    root = entry.get("root")
    # A remote endpoint does not say where its files are; a local one must serve this checkpoint.
    known = lease.model is not None and not lease.remote and root is not None
    if known and os.path.realpath(root) != os.path.realpath(str(lease.model)):
        raise ProbeError(
            f"the {lease.role} server serves the wrong model: {root}; expected {lease.model}"
        )


def _embed_a_point(lease: ServerProcess, deadline: float) -> None:
    body = {"model": lease.spec.get("served_name"), "images": [_POINT]}
    status, answer = request(lease, "POST", "/v1/embeddings", body, math.inf, deadline)
    found = answer.get("data") if status == 200 and isinstance(answer, dict) else None
    if not (isinstance(found, list) and len(found) == 1 and found[0].get("embedding")):
        raise ProbeError(
            "the %s server makes no features of a picture: /v1/embeddings answers %d: %s"
            % (lease.role, status, shortened(answer))
        )


def _complete_one_token(lease: ServerProcess, deadline: float) -> None:
    name = lease.spec.get("served_name")
    text = {"model": name, "prompt": "Hello", "max_tokens": 1, "temperature": 0}
    chat = {
        "model": name,
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": 1,
        "temperature": 0,
    }
    attempts = [("/v1/completions", text), ("/v1/chat/completions", chat)]
    # Hosted endpoints have mostly dropped plain completions.
    for path, body in reversed(attempts) if lease.remote else attempts:
        where = _versioned(lease, path)
        status, answer = request(lease, "POST", where, body, math.inf, deadline)
        if status == 200:
            if not isinstance(answer, dict) or not answer.get("choices"):
                raise ProbeError(f"{path} answers without choices: {shortened(answer)}")
            return
        if status not in (404, 405):
            break
    raise ProbeError(
        "the %s server cannot complete one token: %s answers %d: %s"
        % (lease.role, path, status, shortened(answer))
    )


def _check_environment(lease: ServerProcess, deadline: float) -> None:
    status, meta = request(lease, "GET", "/meta", None, 10.0, deadline)
    if status != 200 or not isinstance(meta, dict):
        raise ProbeError(
            f"the environment server answers GET /meta with {status}: {shortened(meta)}"
        )
    try:
        check_planned(lease.spec.get("expect") or {}, meta)
    except OtherEnvironmentError as error:
        raise ProbeError(f"the environment server {error}") from None
    lease.account = account_facts(meta)
    _play_nothing(lease, meta, deadline)


def _play_nothing(lease: ServerProcess, meta: dict[str, Any], deadline: float) -> None:
    tasks = [task for split in (meta.get("splits") or {}).values() for task in split]
    created = _expect_ok(lease, "/create", {}, deadline)
    number = created.get("id") if isinstance(created, dict) else created
    if tasks:
        _expect_ok(lease, "/reset", {"id": number, "task_id": tasks[0], "seed": 0}, deadline)
    _expect_ok(lease, "/close", {"id": number}, deadline)


def _expect_ok(lease: ServerProcess, path: str, body: Mapping[str, Any], deadline: float) -> Any:
    status, answer = request(lease, "POST", path, body, 60.0, deadline)
    failed = isinstance(answer, dict) and answer.get("error")
    if status != 200 or failed:
        raise ProbeError(
            f"the environment server answers POST {path} with {status}: {shortened(answer)}"
        )
    return answer


def _versioned(lease: ServerProcess, path: str) -> str:
    """Remote endpoints are often given with /v1 at their end."""
    if (lease.url or "").rstrip("/").endswith("/v1"):
        return path[len("/v1") :]
    return path


_EVERY_S = 5.0
_ASK_S = 10.0
_REFUSALS = 3
"""A server that answers otherwise than 200 so often in a row is broken."""


class HealthWatch:
    """A thread for one server, from when it is ready until it ends. `fault` says what is wrong."""

    def __init__(self, lease: ServerProcess, silence_s: float) -> None:
        """`silence_s` is how long it may give no answer, what it waits for a core aside."""
        self.fault: str | None = None
        self._lease = lease
        self._silence_s = silence_s
        self._every_s = min(_EVERY_S, silence_s / _REFUSALS)
        self._stop = threading.Event()

    def begin(self) -> None:
        """Start asking."""
        threading.Thread(target=self._run, daemon=True).start()

    def end(self) -> None:
        """Stop asking."""
        self._stop.set()

    def _run(self) -> None:
        from agentc.program.job import shortened

        most_s = min(_ASK_S, self._silence_s)
        path = str(self._lease.spec["probe"])
        heard, waited, refusals = time.monotonic(), self._without_core(), 0
        while not self._stop.wait(self._every_s):
            now = time.monotonic()
            try:
                status, answer = request(self._lease, "GET", path, None, most_s, now + most_s)
            except NotReadyError as error:
                silent = time.monotonic() - heard
                # Looked up when it matters: it takes a walk through /proc.
                if silent > self._silence_s + self._without_core() - waited:
                    self.fault = f"hangs: for {silent:.0f} s there is {error}"
                    return
                continue
            heard, waited = time.monotonic(), self._without_core()
            refusals = 0 if status == 200 else refusals + 1
            if refusals == _REFUSALS:
                said = shortened(answer) if answer else ""
                self.fault = f"is broken: GET {path} answers {status} {said}"
                return

    def _without_core(self) -> float:
        child = self._lease.child
        return 0.0 if child is None else seconds_without_core(child.pid)
