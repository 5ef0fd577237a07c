"""Asks a running server for its health, so that one that is broken or hangs is noticed early.

The death of its process is the supervisor's to notice. A server whose engine is dead or stuck may
live on and keep its clients waiting for as long as they have patience. Neighbour: `lease.py`.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from agentc.runtime.machine.process import seconds_without_core

if TYPE_CHECKING:
    from agentc.runtime.servers.lease import LeasedServer

_EVERY_S = 5.0
_ASK_S = 10.0
_REFUSALS = 3
"""A server that answers otherwise than 200 so often in a row is broken."""


class HealthWatch:
    """A thread for one server, from when it is ready until it ends. `fault` says what is wrong."""

    def __init__(self, lease: LeasedServer, silence_s: float) -> None:
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
        from agentc.program.environment_account import shortened
        from agentc.runtime.servers.probe import NotReadyError, request

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
