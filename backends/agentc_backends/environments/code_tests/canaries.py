"""What a server tries in its box before it judges anybody: eight things that must not succeed.

The box was probed, and its tests pass; this is the machine, and the day, on which it counts.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agentc.runtime.sandbox.boxes import environment
from agentc.runtime.sandbox.nursery import BoxNursery
from agentc_backends.environments.code_tests.calls import (
    CallLimits,
    CallResult,
    Place,
    make_calls,
)

_LIMITS = CallLimits(seconds=0.2, wall_seconds=10.0, memory_mb=256)
_SOURCE = """
def file():
    return open("/etc/passwd").read(1)
def write(path):
    open(path, "w").close()
def connect(port):
    import socket
    socket.create_connection(("127.0.0.1", port), 1)
def fork():
    import os
    if os.fork() == 0:
        os._exit(0)
def signal(process):
    import os
    os.kill(process, 0)
def variables(known):
    import os
    assert set(os.environ) - set(known)
def memory():
    return len(bytearray(1 << 30))
def endless():
    while True:
        pass
"""


class BrokenBoxError(Exception):
    """Something that must not succeed in a box did."""


def assert_holds(place: Place) -> None:
    """Of a box, or of what a nursery in one forks. Raises BrokenBoxError with what succeeded,
    BoxError where the box does not start."""
    with _bait() as calls:
        results = make_calls(place, _SOURCE, [*calls.values()], _LIMITS)
    succeeded = [
        name for name, result in zip(calls, results, strict=True) if not _held(name, result)
    ]
    if succeeded:
        box = place.box if isinstance(place, BoxNursery) else place
        raise BrokenBoxError(
            f"the {box.kind} box ({box.version}) does not hold: code in it could "
            f"{', '.join(succeeded)}; none that a model wrote is run here"
        )


def _held(name: str, result: CallResult) -> bool:
    wanted = {"take more memory than it may": "memory", "run for ever": "timeout"}
    return result.failure == wanted.get(name, "error")


@contextmanager
def _bait() -> Iterator[Mapping[str, str]]:
    """Calls, by what code could do that makes them: each would succeed without a box."""
    with tempfile.TemporaryDirectory(prefix="agentc-canary-") as folder:
        Path(folder).chmod(0o777)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            yield {
                "read a file": "file()",
                "write a file": f"write({str(Path(folder) / 'written')!r})",
                "connect to a port": f"connect({port})",
                "start a process": "fork()",
                "send a signal": f"signal({os.getpid()})",
                "see variables": f"variables({[*environment(), 'LC_CTYPE', 'PWD']!r})",
                "take more memory than it may": "memory()",
                "run for ever": "endless()",
            }
