"""Trackers beside a run: started when it begins, ended when it is over; a failure is told once.

Whatever happens to one, the run goes on; what it missed, `agentc track` writes later. What they
need of software is built beside the run's first jobs. Neighbours: `process.py`, `chosen.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from agentc.runtime.software.environment import SoftwareEnvironmentError
from agentc.software.build import build_all
from agentc.tracking.chosen import ChosenTracker
from agentc.tracking.process import Followed, TrackerProcess

PATIENCE_S = 60.0
"""So long a run waits at its end for a tracker that still writes."""
_LOOK_S = 0.2


class Trackers:
    """Those of one run; each is served by a thread. `patience` is how long, in seconds, one may
    write on after the run is over; None: as long as it likes."""

    def __init__(
        self,
        chosen: Sequence[ChosenTracker],
        followed: Followed,
        patience: float | None = PATIENCE_S,
    ) -> None:
        self._followed, self._patience = followed, patience
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._over = threading.Event()
        self._given_up = threading.Event()
        self._failed: list[str] = []
        self._threads = [
            threading.Thread(target=self._serve, args=(one,), daemon=True) for one in chosen
        ]
        for thread in self._threads:
            thread.start()

    def news(self) -> list[str]:
        """What they said since the last call."""
        found = []
        while True:
            try:
                found.append(self._lines.get_nowait())
            except Empty:
                return found

    def finish(self) -> Iterator[str]:
        """Let them write what is new, and end; yields what they say until then. Whoever is
        interrupted meanwhile (Ctrl-C) leaves them to end by themselves."""
        self._over.set()
        try:
            while any(thread.is_alive() for thread in self._threads):
                time.sleep(_LOOK_S)
                yield from self.news()
        except BaseException:
            self._given_up.set()
            raise
        yield from self.news()

    @property
    def failed(self) -> tuple[str, ...]:
        """Those that did not get to their end."""
        return tuple(self._failed)

    def _serve(self, one: ChosenTracker) -> None:
        name = one.tracker.id
        try:
            self._build(one)
            program = TrackerProcess(one, self._followed, lambda line: self._say(name, line))
        except (SoftwareEnvironmentError, OSError) as error:
            self._fail(name, str(error).partition("\n")[0])
            return
        while program.ended() is None and not self._over.wait(_LOOK_S):
            pass
        program.finish()
        status = program.wait(self._patience)
        if status is None:
            program.kill()
            self._fail(name, f"it was still writing {self._patience:.0f} s after the run's end")
        elif status != 0:
            self._fail(name, f"{program.last_words()} (log: {program.log})")

    def _build(self, one: ChosenTracker) -> None:
        layout = self._followed.layout
        if one.needed.ready(layout):
            return
        self._say(one.tracker.id, "its software environment is being built (once for all)")
        secrets = one.secrets.values()
        build_all([one.needed], layout, lambda *_: None, stop=self._given_up, withheld=secrets)

    def _fail(self, name: str, why: str) -> None:
        self._failed.append(name)
        if self._patience is None:
            self._say(name, f"failed: {why}")  # nothing goes on
            return
        later = f"`agentc track {self._followed.label} --to {name}` writes what is missing"
        self._say(name, f"failed, and the run goes on without it: {why}; {later}")

    def _say(self, name: str, text: str) -> None:
        self._lines.put(f"{name}: {text}")


@contextmanager
def trackers_beside(
    chosen: Sequence[ChosenTracker], followed: Followed, tell: Callable[[str], None]
) -> Iterator[Trackers]:
    """Trackers for as long as the block runs, and until they have written what came last."""
    trackers = Trackers(chosen, followed)
    try:
        yield trackers
    finally:
        for line in trackers.finish():
            tell(line)
