"""Claims on all objects of a wrapper: waits for whoever works on them, and finds out whether that
one has published them, on another node too."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from agentc.runtime.machine.stopping import stoppable
from agentc.runtime.store import holder
from agentc.runtime.store.claim import LostClaimError, ObjectLock
from agentc.runtime.store.keeper import Heartbeat
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.trouble import writing
from agentc.runtime.store.visible import await_published, visibility_timeout

_SHORTEST_S, _LONGEST_S = 0.1, 1.0


def claim_all(
    layout: StoreLayout,
    wanted: Mapping[str, Sequence[str]],
    published: Callable[[], bool],
    say: Callable[[str], None],
) -> list[ObjectLock] | None:
    """Hold the claims on the objects `wanted`, each with the objects that making it reads. None
    when others published all of them meanwhile. Raises StoppedError, LostClaimError and OSError.
    """
    held: list[ObjectLock] = []
    try:
        with stoppable(), writing("its claims", layout.root / "locks"):
            # One order for everybody, so that two sessions with common members cannot block each
            # other for ever.
            for name in sorted(wanted):
                claim = ObjectLock(layout, name, wanted[name])
                _wait(claim, Heartbeat(held), say)
                held.append(claim)
            for claim in held:
                _look_elsewhere(layout, claim, Heartbeat(held))
            if not published():
                return held
    except BaseException:
        _release(held)
        raise
    _release(held)
    return None


def _wait(claim: ObjectLock, keeper: Heartbeat, say: Callable[[str], None]) -> None:
    pause, reported = _SHORTEST_S, False
    due = time.monotonic() + keeper.every
    try:
        while True:
            record = claim.attempt()
            if record is None:
                return
            if not reported:
                by = f" ({holder.words(record)})" if record else ""
                say(f"another run works on {claim.name}{by}; waiting")
                reported = True
            time.sleep(pause)
            if not record or not holder.same_kernel(record):
                pause = min(_LONGEST_S, 1.5 * pause)
            if time.monotonic() >= due:
                due = time.monotonic() + keeper.every
                if not keeper.beat():
                    raise LostClaimError(claim.name)
    except BaseException:
        claim.release()
        raise


def _look_elsewhere(layout: StoreLayout, claim: ObjectLock, keeper: Heartbeat) -> None:
    """Wait for an object that another node says it has published and that does not show here."""
    delay = visibility_timeout(layout)
    if delay <= 0 or layout.is_published(claim.name):
        return
    age = claim.published_elsewhere()
    if age is None:
        return
    deadline = time.monotonic() + delay - age
    while time.monotonic() < deadline:
        if await_published(layout, claim.name, min(keeper.every, deadline - time.monotonic())):
            return
        if not keeper.beat():
            raise LostClaimError(claim.name)


def _release(held: Sequence[ObjectLock]) -> None:
    for claim in held:
        claim.release()
