"""Runs inside the box: forks a child for each job, and waits until nothing is left of it.

It is sent there as text. It never reads a job: the child does, so that no child finds in the memory
that it has from here what another one was given. A child gives up all that this may do besides.
"""

from __future__ import annotations

import ctypes
import gc
import marshal
import os
import resource
from typing import Any

spaces: list[dict[str, Any]] = []
"""The names of lockdown, of this and of the program; whoever starts this sets them."""
_SET_DEATH_SIGNAL, _SIGKILL = 1, 9
_SET_SECCOMP, _SECCOMP_FILTER = 22, 2


def main(answers: int, data: dict[str, Any]) -> None:
    """`jobs` and `told` are descriptors, `filter` is what a child may do."""
    jobs, told = data["jobs"], data["told"]
    own = os.getpid()
    described = spaces[0]["_described"](data["filter"])
    # Made here, once: what is made for a call costs a child more than the call, pages copied.
    call = ctypes.PyDLL(None).prctl
    dies = _arguments(_SET_DEATH_SIGNAL, _SIGKILL)
    locks = _arguments(_SET_SECCOMP, _SECCOMP_FILTER, ctypes.addressof(described))
    os.environ.pop("LD_BIND_NOW", None)
    # What the first run of a program makes is made here, once: each child would have to copy.
    spaces[2].get("rehearse", lambda: None)()
    gc.collect()
    gc.freeze()  # else a child's first collection copies every page
    while os.read(jobs, 1) == b"j":
        child = os.fork()
        if child == 0:
            try:
                if call(*dies) or os.getppid() != own:
                    os._exit(1)
                job = marshal.loads(_exactly(jobs, int.from_bytes(_exactly(jobs, 8), "little")))
                os.close(jobs)
                os.close(told)
                resource.setrlimit(resource.RLIMIT_CPU, (job["seconds"], job["seconds"]))
                resource.setrlimit(resource.RLIMIT_AS, (job["memory"], job["memory"]))
                if call(*locks):
                    os._exit(1)
                os.write(answers, b"ready\n")
                spaces[2]["main"](answers, job["data"])
            finally:
                os._exit(1)
        os.waitpid(child, 0)
        os.write(told, b"g")
    os._exit(0)


def _arguments(option: int, *words: int) -> tuple[Any, ...]:
    """Of `prctl`, as C has them: five, the others 0."""
    rest = [*words, 0, 0, 0, 0][:4]
    return (ctypes.c_int(option), *(ctypes.c_ulong(word) for word in rest))


def _exactly(descriptor: int, number: int) -> bytes:
    text = b""
    while len(text) < number:
        more = os.read(descriptor, number - len(text))
        if not more:
            os._exit(1)
        text += more
    return text
