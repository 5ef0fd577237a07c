"""Run by ScienceWorld's own Python: a JVM that stands still, one that fails and one that has no
memory left, with episodes in them; and more episodes than a JVM takes. Prints what came of each.
"""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from agentc_backends.environments.sciworld.environment import (
    ScienceWorldEnvironment,
    ScienceWorldShared,
)
from agentc_backends.environments.sciworld.job_serve import find_java
from agentc_backends.environments.sciworld.jvm import Jvm
from agentc_backends.environments.sciworld.pool import JvmPool
from agentc_backends.environments.sciworld.settings import SciworldSettings
from agentc_backends.environments.server.environment import EnvironmentFailure

TASK = "find-animal:0"


def main() -> None:
    pool = JvmPool(lambda: Jvm(find_java(), heap_mb=128), processes=1, episodes_at_once=8)
    shared = ScienceWorldShared(pool, SciworldSettings(), {})
    one, other = ScienceWorldEnvironment(shared), ScienceWorldEnvironment(shared)
    found: dict[str, Any] = {}
    for name, harm in (("still", stop), ("failing", fail), ("full", fill)):
        for each in (one, other):
            each.reset(TASK)
        (before,) = pool.pids
        jvm = one._simulation.jvm  # type: ignore[union-attr]
        harm(jvm)
        told = [refused(each) for each in (one, other)]
        for each in (one, other):
            each.reset(TASK)
        (after,) = pool.pids
        found[name] = {
            "told": told,
            "ended": not jvm.alive,
            "replaced": before != after,
            "seen": [each.step("look around")[0] for each in (one, other)],
        }
    pool.close()
    print(json.dumps({**found, "crowded": crowded()}))


def crowded() -> dict[str, Any]:
    """Three episodes, where a JVM takes one and there may be two of them."""
    pool = JvmPool(
        lambda: Jvm(find_java(), heap_mb=128), processes=1, episodes_at_once=1, most_processes=2
    )
    shared = ScienceWorldShared(pool, SciworldSettings(), {})
    one, two, three = (ScienceWorldEnvironment(shared) for _ in range(3))
    jvms = []
    for each in (one, two):
        each.reset(TASK)
        jvms.append(len(pool.pids))
    refusal = ""
    try:
        three.reset(TASK)
    except EnvironmentFailure as error:
        refusal = str(error)
    one.close()
    three.reset(TASK)
    found = {"jvms": [*jvms, len(pool.pids)], "refusal": refusal}
    pool.close()
    return found


def stop(jvm: Jvm) -> None:
    """It keeps its connections and says nothing; what would take minutes takes a second."""
    client = jvm._gateway._gateway_client
    for connection in client.deque:
        connection.socket.settimeout(1.0)
    # New connections: py4j opens one where Python forgets a Java object meanwhile.
    client.gateway_parameters.read_timeout = 1.0
    os.kill(jvm.pid, signal.SIGSTOP)


def fail(jvm: Jvm) -> None:
    """The next call raises an exception of Java's."""
    jvm._set_ids = lambda count: jvm._random_field.set(None, None)  # type: ignore[method-assign]


def fill(jvm: Jvm) -> None:
    """The next call runs out of memory."""
    java = jvm._gateway.jvm

    def hoard(count: int) -> None:
        kept = java.java.util.ArrayList()
        for _ in range(1000):
            kept.add(java.java.nio.CharBuffer.allocate(4_000_000))

    jvm._set_ids = hoard  # type: ignore[method-assign]


def refused(environment: ScienceWorldEnvironment) -> str:
    try:
        environment.step("look around")
    except EnvironmentFailure as error:
        return str(error)
    return ""


if __name__ == "__main__":
    main()
