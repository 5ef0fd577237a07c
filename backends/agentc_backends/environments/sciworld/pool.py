"""JvmPool: lends simulations from a few JVMs, starts them when they are needed, and replaces a JVM
after so many episodes, since what an episode leaves behind in it is never quite nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from agentc_backends.environments.sciworld.jvm import Jvm, Simulation
from agentc_backends.environments.server.environment import EnvironmentFailure


@dataclass(slots=True)
class _Member:
    """A JVM of the pool: simulations that are lent, and those that wait to be used again."""

    jvm: Jvm
    lent: int = 0
    free: list[Simulation] = field(default_factory=list)


class JvmPool:
    """`processes` JVMs that take new episodes, each with at most `episodes_at_once`, and up to
    `most_processes` where those are full; a JVM that has loaded `loads_each` tasks takes no more,
    and ends with its last episode."""

    def __init__(
        self,
        start: Callable[[], Jvm],
        *,
        processes: int,
        episodes_at_once: int,
        most_processes: int | None = None,
        loads_each: int = 400,
    ) -> None:
        self._start = start
        self._processes = processes
        self._most_processes = max(processes, most_processes or 0)
        self._episodes_at_once = episodes_at_once
        self._loads_each = loads_each
        self._members: list[_Member] = []
        self._starting = 0
        self._closed = False
        self._changed = threading.Condition()

    @property
    def pids(self) -> list[int]:
        """Process ids of the JVMs that run."""
        with self._changed:
            return [member.jvm.pid for member in self._members if member.jvm.alive]

    def warm(self) -> None:
        """Start a JVM now, so that what is wrong with it shows. Raises EnvironmentFailure."""
        self.release(self.acquire())

    def acquire(self) -> Simulation:
        """A simulation for one episode. Raises EnvironmentFailure."""
        member = self._choose()
        if member is None:
            member = self._started()
        if member.free:
            return self._reused(member)
        try:
            return member.jvm.open()
        except EnvironmentFailure:
            self._give_back(member)
            raise

    def release(self, simulation: Simulation) -> None:
        """Take a simulation back; never blocks."""
        with self._changed:
            for member in self._members:
                if member.jvm is simulation.jvm:
                    member.free.append(simulation)
        self._give_back(next((m for m in self._members if m.jvm is simulation.jvm), None))

    def close(self) -> None:
        """End every JVM."""
        with self._changed:
            self._closed = True
            members, self._members = self._members, []
        for member in members:
            member.jvm.end()

    def _choose(self) -> _Member | None:
        """A member with a place, counted as lent; None when a JVM is to be started."""
        with self._changed:
            while True:
                if self._closed:
                    raise EnvironmentFailure("the simulators are being stopped")
                self._drop_ended()
                open_members = [m for m in self._members if not self._worn(m)]
                idle = [m for m in open_members if m.lent == 0]
                running = len(open_members) + self._starting
                free = [m for m in open_members if m.lent < self._episodes_at_once]
                wanted = self._processes if free else self._most_processes
                if not idle and running < wanted:
                    self._starting += 1
                    return None
                if free:
                    chosen = min(free, key=lambda m: m.lent)
                    chosen.lent += 1
                    return chosen
                if not self._starting:
                    most = self._most_processes * self._episodes_at_once
                    raise EnvironmentFailure(f"all {most} places of the simulators are taken")
                self._changed.wait()

    def _started(self) -> _Member:
        try:
            member = _Member(self._start(), lent=1)
        except BaseException:
            with self._changed:
                self._starting -= 1
                self._changed.notify_all()
            raise
        with self._changed:
            self._starting -= 1
            closed = self._closed
            if not closed:
                self._members.append(member)
            self._changed.notify_all()
        if closed:
            member.jvm.end()
            raise EnvironmentFailure("the simulators are being stopped")
        return member

    def _reused(self, member: _Member) -> Simulation:
        with self._changed:
            if member.free:
                return member.free.pop()
        return member.jvm.open()

    def _give_back(self, member: _Member | None) -> None:
        if member is None:
            return
        with self._changed:
            member.lent -= 1
            over = member.lent <= 0 and self._worn(member)
            if over:
                self._members = [m for m in self._members if m is not member]
            self._drop_ended()
            self._changed.notify_all()
        if over:
            threading.Thread(target=member.jvm.end, daemon=True).start()

    def _worn(self, member: _Member) -> bool:
        return member.jvm.loads >= self._loads_each

    def _drop_ended(self) -> None:
        self._members = [m for m in self._members if m.jvm.alive]
