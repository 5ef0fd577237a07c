"""The servers of one job: started together, probed, watched, ended; one or several replicas of
each."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from agentc.runtime.machine.supervise import Supervisor
from agentc.runtime.servers.server_log import describe_log
from agentc.runtime.servers.server_process import LeaseError, ServerProcess

GRACE_S = 10.0
"""How long a server may take to stop after SIGTERM."""
_PORT_TRIES = 4
_OF_A_COPY = ("ready_s", "cpu_s", "max_rss_mb")


def start_all(
    leases: Sequence[ServerProcess],
    supervisor: Supervisor,
    over: Callable[[], bool] = lambda: False,
) -> bool:
    """Start all servers at once, but for those that ask others of them, which come second; return
    when each is ready and is what it should be; false when `over` says meanwhile that nobody needs
    them any more.

    Raises LeaseError (a server died, is late, or is another one) or StoppedError.
    """
    first = [lease for lease in leases if not lease.needs]
    if not _start_wave(first, supervisor, over, ()):
        return False
    asking = [lease for lease in leases if lease.needs]
    return not asking or _start_wave(asking, supervisor, over, first)


def _start_wave(
    leases: Sequence[ServerProcess],
    supervisor: Supervisor,
    over: Callable[[], bool],
    before: Sequence[ServerProcess],
) -> bool:
    """Those that need nothing that is not ready. `before` were, and must not die meanwhile."""
    for lease in leases:
        if not lease.remote:
            lease.start(supervisor)
    checks = [_Check(lease) for lease in leases]
    try:
        for check in checks:
            check.begin()

        def settled() -> bool:
            gone = dead(before)
            if gone is not None:
                raise LeaseError(death_message(gone))
            for check in checks:
                child = check.lease.child
                if not check.done and child is not None and child.status is not None:
                    if check.lease.port_was_taken() and check.tries < _PORT_TRIES:
                        check.tries += 1
                        check.cancel()
                        check.lease.start(supervisor)
                        check.begin()
                        continue
                    raise LeaseError(death_message(check.lease))
                if check.error is not None:
                    raise LeaseError(check.error + _tail(check.lease))
            return over() or all(check.done for check in checks)

        supervisor.wait(settled, every=0.05)
        for check in checks:
            if check.done:
                check.lease.watch()
        return all(check.done for check in checks)
    finally:
        for check in checks:
            check.cancel()
            check.lease.release_port()


def distinct_name(role: str, identity: str, taken: Collection[str]) -> str:
    """The name of one of several servers in one folder: its role for the first, and for others
    with the same one eight digits of what they are besides."""
    if role not in taken:
        return role
    return f"{role}-{hashlib.sha256(identity.encode('utf-8')).hexdigest()[:8]}"


def end_all(leases: Sequence[Any], supervisor: Supervisor) -> None:
    """End the servers that this process started: TERM, grace, KILL, each with its whole group."""
    supervisor.end([lease.child for lease in leases if lease.child is not None], GRACE_S)


def dead(leases: Sequence[ServerProcess]) -> ServerProcess | None:
    """The first server that has ended or does not serve any more, or None."""
    for lease in leases:
        if lease.child is not None and (lease.child.status is not None or lease.fault):
            return lease
    return None


def death_message(lease: ServerProcess) -> str:
    """What to tell people about a server that ended by itself, or serves no more."""
    status = lease.child.status if lease.child is not None else None
    how = f"exited with {status}"
    if status is not None and status < 0:
        how = "was killed by signal %d" % -status
    elif status == 0:
        how = "exited with 0 while it was needed"
    elif status is None and lease.fault:
        how = lease.fault
    return f"the {lease.role} server ({lease.spec['backend']}) {how}{_tail(lease)}"


def _tail(lease: ServerProcess) -> str:
    return "" if lease.remote else describe_log(lease.log, lease.spec, lease.log_begins)


class _Check:
    """Probes one lease in a thread, so that the loop can watch for deaths meanwhile."""

    def __init__(self, lease: ServerProcess) -> None:
        self.lease = lease
        self.done = False
        self.error: str | None = None
        self.tries = 1
        self._stop: threading.Event | None = None

    def begin(self) -> None:
        self._stop = threading.Event()
        thread = threading.Thread(target=self._run, args=(self._stop,), daemon=True)
        thread.start()

    def cancel(self) -> None:
        if self._stop is not None:
            self._stop.set()

    def _run(self, stop: threading.Event) -> None:
        from agentc.runtime.servers import probe

        started = time.monotonic()
        try:
            probe.await_ready(self.lease, started, stop)
        except Exception as error:
            if not stop.is_set():
                self.error = str(error) or repr(error)
        else:
            if not stop.is_set():
                self.lease.ready_s = time.monotonic() - started
                self.done = True


class ServerCopies:
    """Several servers that are alike, each on GPUs of its own, as one lease of a job."""

    remote = False

    def __init__(self, copies: Sequence[ServerProcess]) -> None:
        self.role = copies[0].role
        self.spec = copies[0].spec
        self.copies = list(copies)
        for copy in copies:  # a client knows one token
            copy.token = copies[0].token

    @property
    def endpoint(self) -> dict[str, Any]:
        """As of one, with the addresses of all under `urls`."""
        return {**self.copies[0].endpoint, "urls": [copy.url for copy in self.copies]}

    def manifest(self) -> dict[str, Any]:
        """As of one, with what each used."""
        found = self.copies[0].manifest()
        found["copies"] = [
            {name: each for name, each in copy.manifest().items() if name in _OF_A_COPY}
            for copy in self.copies
        ]
        return found
