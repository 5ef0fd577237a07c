"""Starts a server of somebody else beside ours, and ends it with us.

The command comes from a spec, which may be a stranger's: it is run only where the person who
runs agentc says so (ALLOW). `fields.py` is what a spec
may say of it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agentc.program.child import die_with_parent

ALLOW = "AGENTC_ALLOW_LAUNCH"
"""Environment variable that must be 1 for a spec's command to be run."""
HOST = "127.0.0.1"
LOST = 3
"""Exit status of ours when the launched server ended before it."""
_GRACE_S = 3.0
_SPEC = "AGENTC_SPEC_DIR"
"""The folder of the spec, where its relative paths start."""
_OURS = ("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONNOUSERSITE", "AGENTC_TOKEN", "AGENTC_IMPORTED")


class UpstreamLaunchError(Exception):
    """The server was not started, or did not get ready; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What to start: `{port}` and `{host}` in words and values are filled in."""

    command: tuple[str, ...]
    cwd: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    ready_path: str = "/"
    ready_timeout_s: float = 120.0


class Running:
    """A started server, in a process group of its own."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self._process = process
        self.url = url

    def end(self) -> None:
        """TERM, grace, KILL, to the whole group."""
        group = self._process.pid
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        # What the server itself had started may outlive it.
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        self._process.wait()

    def status(self) -> int | None:
        return self._process.poll()

    def watch(self) -> None:
        """End this process as soon as the server ends: its clients then learn of it at once."""

        def work() -> None:
            status = self._process.wait()
            print(f"the launched server ended with {status}", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=work, name="launched", daemon=True).start()


def start(launch: Launch) -> Running:
    """Start a server and return once it answers. Call it from the main thread, whose end takes
    the server along. Raises UpstreamLaunchError."""
    check_command_allowed(launch.command)
    me = os.getpid()
    words = {"{host}": HOST, "{port}": str(_free_port())}
    argv = [_filled(word, words) for word in launch.command]
    variables = {name: value for name, value in os.environ.items() if name not in _OURS}
    # Some servers order their texts by hash.
    variables["PYTHONHASHSEED"] = "0"
    variables.update({name: _filled(value, words) for name, value in launch.variables.items()})
    try:
        process = subprocess.Popen(
            argv,
            cwd=folder_of(launch),
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            stderr=sys.stderr,
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(signal.SIGKILL, me),
        )
    except OSError as error:
        raise UpstreamLaunchError(f"{argv[0]} cannot be started: {error}") from None
    running = Running(process, f"http://{HOST}:{words['{port}']}")
    try:
        _await_ready(running, launch)
    except BaseException:
        running.end()
        raise
    return running


def check_command_allowed(command: Sequence[str]) -> None:
    """Raises UpstreamLaunchError where nobody allowed a spec's commands."""
    if os.environ.get(ALLOW) != "1":
        raise UpstreamLaunchError(
            f"the spec wants to run a command of its own: {' '.join(command)}\n"
            f"If you trust it, export {ALLOW}=1 in the shell that runs agentc, or start the server "
            "yourself and give its address as `url`."
        )


def folder_of(launch: Launch) -> Path | None:
    """Where it is started; None is where we are."""
    return None if launch.cwd is None else Path(os.environ.get(_SPEC, ""), launch.cwd)


def serve_upstream(
    url: str | None,
    launch: Mapping[str, object] | None,
    survey: Callable[[str], Callable[[Callable[[], bool]], int]],
    failures: tuple[type[Exception], ...],
) -> int:
    """Serve episodes of a server at `url`, or of one that is started here and ended with us.

    `survey` looks at it and gives what serves, which is told whether the server is still there and
    returns an exit status. The status here is that one; 2 where it cannot be started or `survey`
    raises one of `failures`; LOST where it ended before us.
    """
    running: Running | None = None
    told: tuple[type[Exception], ...] = (UpstreamLaunchError, ValueError, *failures)
    try:
        if launch is not None:
            running = start(read_launch(launch))
        address = url if running is None else running.url
        if address is None:
            raise ValueError("one of `url` and `launch` says where the server is")
        work = survey(address)
    except told as error:
        print(error, file=sys.stderr)
        if running is not None:
            running.end()
        return 2
    if running is None:
        return work(lambda: True)
    started = running
    started.watch()
    try:
        status = work(lambda: started.status() is None)
        return status if started.status() is None else LOST
    finally:
        started.end()


def _await_ready(running: Running, launch: Launch) -> None:
    deadline = time.monotonic() + launch.ready_timeout_s
    reason = "it does not listen"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while time.monotonic() < deadline:
        if running.status() is not None:
            raise UpstreamLaunchError(
                f"the launched server ended with {running.status()} before it was ready"
            )
        try:
            with opener.open(running.url + launch.ready_path, timeout=5.0):
                return
        except urllib.error.HTTPError as error:
            reason = f"GET {launch.ready_path} answers {error.code}"
        except OSError as error:
            reason = str(error)
        time.sleep(0.1)
    raise UpstreamLaunchError(
        f"the launched server was not ready in {launch.ready_timeout_s:g} s: {reason}"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _filled(text: str, words: Mapping[str, str]) -> str:
    for placeholder, value in words.items():
        text = text.replace(placeholder, value)
    return text


def read_launch(written: Mapping[str, object]) -> Launch:
    """The record behind a spec's `launch`, checked by the spec's schema before."""
    command, variables = written["command"], written.get("variables") or {}
    assert isinstance(command, Sequence)
    assert isinstance(variables, Mapping)
    cwd, timeout = written.get("cwd"), written.get("ready_timeout_s", 120.0)
    return Launch(
        command=tuple(str(word) for word in command),
        cwd=None if cwd is None else str(cwd),
        variables={str(name): str(value) for name, value in variables.items()},
        ready_path=str(written.get("ready_path", "/")),
        ready_timeout_s=float(str(timeout)),
    )
