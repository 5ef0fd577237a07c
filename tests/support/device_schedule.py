"""`python device_schedule.py FOLDER SEED COUNT`: random schedules of jobs that lease pretended
GPUs, with real processes and real locks. Writes what happened, one schedule to a line of JSON.

Nothing goes by the clock: after each step the conductor reckons who must get what, and reads until
it has been told. A job that never gets what it must would be waited for for ever.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path

from agentc.runtime.machine.device_lease import DeviceLease
from agentc.runtime.machine.hardware import Device


class Worker:
    """A job: a process that waits for its GPUs, says which they are, and keeps them until told."""

    def __init__(self, folder: Path, devices: list[Device], wants: int) -> None:
        self.wants = wants
        self.held: tuple[str, ...] = ()
        said, say = os.pipe()
        told, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(said)
            os.close(tell)
            _work(folder, devices, wants, say, told)
        os.close(say)
        os.close(told)
        self.said, self._tell = said, tell

    def read(self) -> None:
        self.held = tuple(os.read(self.said, 4096).decode().split())
        assert len(self.held) == self.wants, f"told {self.held}, not {self.wants}"

    def end(self, *, kill: bool) -> None:
        """Over: it lets go by itself, or the kernel does."""
        if kill:
            os.kill(self.pid, signal.SIGKILL)
        else:
            os.write(self._tell, b"x")
        os.waitpid(self.pid, 0)
        os.close(self.said)
        os.close(self._tell)


def _work(folder: Path, devices: list[Device], wants: int, say: int, told: int) -> None:
    try:
        lease = DeviceLease(devices, wants, f"job {os.getpid()}", folder)
        while not lease.try_acquire():
            time.sleep(0.001)
        os.write(say, " ".join(device.name for device in lease.held).encode())
        os.read(told, 1)
        lease.release()
    except BaseException as error:
        os.write(say, repr(error).encode())
    finally:
        os._exit(0)


def conduct(folder: Path, seed: int) -> dict[str, int]:
    """One schedule; raises AssertionError where two jobs have one GPU."""
    chance = random.Random(seed)
    count = 1 + seed % 8
    devices = [Device(str(number), f"gpu{number}") for number in range(count)]
    jobs: list[Worker] = []
    found = {"devices": count, "jobs": 0, "granted": 0, "killed": 0, "waited": 0, "most": 0}
    for step in range(24):
        waiting = [job for job in jobs if not job.held]
        holding = [job for job in jobs if job.held]
        if step < 16 and (len(waiting) < 3 or chance.random() < 0.4):
            jobs.append(Worker(folder, devices, chance.randint(1, count)))
            found["jobs"] += 1
        elif holding or waiting:
            over = chance.choice(holding or waiting)
            if waiting and chance.random() < 0.2:
                over = chance.choice(waiting)
            kill = not over.held or chance.random() < 0.4
            over.end(kill=kill)
            found["killed"] += kill
            jobs.remove(over)
        _settle(jobs, count, found)
    for job in jobs:
        job.end(kill=True)
    return found


def _settle(jobs: list[Worker], count: int, found: dict[str, int]) -> None:
    """Until no job waits that would fit: each of them must get what it wants."""
    while True:
        taken = [name for job in jobs for name in job.held]
        assert len(taken) == len({*taken}), f"two jobs have one GPU: {taken}"
        found["most"] = max(found["most"], len(taken))
        waiting = {job.said: job for job in jobs if not job.held}
        if not any(job.wants <= count - len(taken) for job in waiting.values()):
            found["waited"] += len(waiting)
            return
        ready, _, _ = select.select(list(waiting), [], [])
        for said in ready:
            waiting[said].read()
            found["granted"] += 1


if __name__ == "__main__":
    root, first, number = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for each in range(first, first + number):
        print(json.dumps(conduct(root / str(each), each)), flush=True)
