"""Environment servers under many sessions, while clients and servers are killed:
`python -m benchmarks.soak [--environments textcraft ...] [--minutes 10] [--sessions 32]`.

Four client processes share the sessions and play walks of whole episodes. Clients are killed at
random moments all the time, the server in the first two fifths; what takes their place goes on.
Checked: every walk tells what it told alone; no episode is void but by a killed server; when the
last client is killed, its sessions end with its lease; the server's memory at the end against that
after a third of its last life, and that of each process that it has started against a bound; its
threads and files, idle, against those of an idle server that has played each walk once; and that no
process of a server is left. One line of figures for each environment; exit status 1 if any check
fails. Neighbours: `soak_player.py` (a client), `soak_server.py` (the server).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentc_backends import clients
from benchmarks.soak_player import LEASE_SECONDS, rows_of
from benchmarks.soak_server import TOKEN, NotHereError, SoakedServer, served_environments

_CLIENTS = 4
_WALKS = 16
_MOST_ACTIONS = 30
_NONSENSE = ("", "xyzzy", "look around", "inventory", "wörter, 漢字", "-1")
MEMORY_SHARE, MEMORY_MIB = 0.05, 16.0
"""How much more a server may hold at the end: the larger of the two."""
CHILD_MIB = 700.0
"""How much a process of the server's may hold: Java's heap, which grows to its limit of 512 MiB
before it is cleaned, and what Java needs beside it."""
_SPARE_FILES, _FILES_OF_A_CHILD = 2, 4
_START_SECONDS = 60.0
_CALLS_SECONDS = 60.0
"""For calls of killed clients that the server is still at work on."""
_AFTERMATH_SECONDS = 20.0
"""After a killed server is up again: calls that it left hanging have given up by then."""


@dataclass(slots=True)
class Outcome:
    """What a soak of one environment found; `faults` says what is wrong, in words."""

    environment: str
    seconds: float
    sessions: int
    counts: Counter[str] = field(default_factory=Counter)
    clients_killed: int = 0
    servers_killed: int = 0
    last_restart: float = 0.0
    memory: tuple[float, float] = (0.0, 0.0)
    threads: tuple[int, int] = (0, 0)
    files: tuple[int, int] = (0, 0)
    children: tuple[int, int] = (0, 0)
    child_mib: float = 0.0
    faults: list[str] = field(default_factory=list)

    def line(self) -> str:
        counts, (warm, end) = self.counts, self.memory
        return (
            f"{self.environment}: {self.seconds:.0f} s, {self.sessions} sessions, "
            f"{counts['episodes']} episodes, {counts['steps']} steps "
            f"({counts['steps'] / self.seconds:.0f}/s); killed {self.clients_killed} clients and "
            f"{self.servers_killed} servers; {counts['void']} void, {counts['wrong']} wrong; "
            f"memory {warm:.0f} -> {end:.0f} MiB, threads {self.threads[0]} -> {self.threads[1]}, "
            f"files {self.files[0]} -> {self.files[1]}, "
            f"its processes {self.children[0]} -> {self.children[1]} (at most "
            f"{self.child_mib:.0f} MiB each): " + ("; ".join(self.faults) if self.faults else "ok")
        )


def soak(
    environment: str, *, seconds: float, sessions: int, seed: int, files: Path | None = None
) -> Outcome:
    """Raises NotHereError where the environment cannot be started on this machine."""
    chance = random.Random(f"{environment} {seed}")
    outcome = Outcome(environment, seconds, sessions)
    with tempfile.TemporaryDirectory(prefix="agentc-soak-") as name:
        folder = Path(name)
        server = SoakedServer(environment, folder, files)
        try:
            walks = asyncio.run(_walks(server.url, chance))
            (folder / "walks.json").write_text(json.dumps(walks), encoding="utf-8")
            _settle(server)
            idle = server.threads(), server.files(), len(server.children_mib())
            clients = _Clients(folder, server.url, max(1, sessions // _CLIENTS), chance)
            try:
                clients.await_episodes()
                warm, end = _play(server, clients, seconds, chance, outcome)
            finally:
                clients.kill_all()
            if not _settle(server):
                outcome.faults.append(f"sessions left: {server.census()}")
            outcome.counts = clients.counts()
            outcome.faults += clients.voided(outcome.last_restart + _AFTERMATH_SECONDS)[:3]
            outcome.memory = (warm, end)
            outcome.threads = (idle[0], server.threads())
            outcome.files = (idle[1], server.files())
            children = server.children_mib()
            outcome.children = (idle[2], len(children))
            outcome.child_mib = max(children, default=0.0)
            judge(outcome, clients.complaints())
        finally:
            left = server.stop()
        if left:
            outcome.faults.append(f"{left} processes left when the server had ended")
    return outcome


async def _walks(url: str, chance: random.Random) -> list[dict[str, Any]]:
    """Walks, and what each tells when it is alone."""
    async with clients.EnvironmentClient(url, TOKEN, lease_s=LEASE_SECONDS) as environment:
        meta = await environment.meta()
        tasks = sorted({task for split in meta["splits"].values() for task in split})
        walks: list[dict[str, Any]] = []
        for task in chance.sample(tasks, min(_WALKS, len(tasks))):
            walk: dict[str, Any] = {"task": task, "seed": chance.randrange(4)}
            plan: list[str] = []
            if "expert" in meta["capabilities"]:
                plan = [step["action"] for step in await environment.expert(task, walk["seed"])]
            walk["actions"] = _actions(plan, chance)
            walk["rows"] = await rows_of(environment, walk, Counter())
            walks.append(walk)
    return walks


def _actions(plan: list[str], chance: random.Random) -> list[str]:
    """The plan with other words in between, or other words alone."""
    if not plan:
        return [chance.choice(_NONSENSE) for _ in range(_MOST_ACTIONS)]
    mixed: list[str] = []
    for action in plan[:_MOST_ACTIONS]:
        if chance.random() < 0.2:
            mixed.append(chance.choice([*_NONSENSE, *plan]))
        mixed.append(action)
    return mixed


class _Clients:
    """The client processes; one that is killed is followed by another."""

    def __init__(self, folder: Path, url: str, sessions: int, chance: random.Random) -> None:
        self._folder = folder
        self._url = url
        self._sessions = sessions
        self._chance = chance
        self._started = 0
        self._running = [self._start() for _ in range(_CLIENTS)]

    def await_episodes(self) -> None:
        """Until every client has ended an episode: starting them takes seconds where much runs."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            logs = [self._folder / f"client-{number}.jsonl" for number in range(_CLIENTS)]
            if all(log.exists() and '"episodes"' in log.read_text("utf-8") for log in logs):
                return
            time.sleep(0.2)

    def kill_one(self) -> None:
        place = self._chance.randrange(_CLIENTS)
        self._running[place].kill()
        self._running[place].wait()
        self._running[place] = self._start()

    def kill_all(self) -> None:
        for process in self._running:
            process.kill()
            process.wait()

    def counts(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for log in self._folder.glob("client-*.jsonl"):
            # The last line may have been cut off by the kill.
            lines = [line for line in log.read_text("utf-8").splitlines() if line.endswith("}")]
            if lines:
                total.update(json.loads(lines[-1]))
        return total

    def complaints(self) -> list[str]:
        logs = sorted(self._folder.glob("client-*.err"))
        return [line[:400] for log in logs for line in log.read_text("utf-8").splitlines()]

    def voided(self, since: float) -> list[str]:
        """Why episodes were void at that time (seconds of the epoch) or later."""
        reasons = []
        for log in sorted(self._folder.glob("client-*.void")):
            lines = [line for line in log.read_text("utf-8").splitlines() if line.endswith("]")]
            for at, reason in map(json.loads, lines):
                if at >= since:
                    reasons.append(f"void with no server killed: {reason[:400]}")
        return reasons

    def _start(self) -> subprocess.Popen[bytes]:
        number = self._started
        self._started += 1
        stem = self._folder / f"client-{number}"
        argv = [sys.executable, "-m", "benchmarks.soak_player", str(self._folder / "walks.json")]
        argv += [self._url, str(self._sessions), str(self._chance.randrange(2**31))]
        with Path(f"{stem}.err").open("wb") as errors:
            return subprocess.Popen(
                [*argv, f"{stem}.jsonl"],
                env={**os.environ, "AGENTC_TOKEN": TOKEN},
                cwd=Path(__file__).parents[1],
                stderr=errors,
            )


def _play(
    server: SoakedServer,
    clients: _Clients,
    seconds: float,
    chance: random.Random,
    outcome: Outcome,
) -> tuple[float, float]:
    """Kills until time is up; the memory after a third of the last server's life, and at the
    end."""
    began = time.monotonic()
    peace = 0.4 * seconds
    between_clients = min(6.0, max(2.0, seconds / 8))
    servers_due = [peace * (n + 1) / (n_all + 1) for n_all in [max(1, int(peace / 60))]
                   for n in range(n_all)]  # fmt: skip
    client_due = between_clients
    samples: list[tuple[float, float]] = []
    while (now := time.monotonic() - began) < seconds:
        if servers_due and now > servers_due[0]:
            servers_due.pop(0)
            left = server.kill_and_restart()
            outcome.servers_killed += 1
            outcome.last_restart = time.time()
            if left:
                outcome.faults.append(f"{left} processes left when the server was killed")
        elif now > client_due:
            clients.kill_one()
            outcome.clients_killed += 1
            client_due = now + between_clients * chance.uniform(0.5, 1.5)
        if now > peace:
            samples.append((now, server.memory_mib()))
        time.sleep(0.25)
    third = peace + (seconds - peace) / 3
    warm = [memory for at, memory in samples if third <= at < third + (seconds - peace) / 6]
    end = [memory for at, memory in samples if at >= seconds - (seconds - peace) / 6]
    return statistics.median(warm), statistics.median(end)


def _settle(server: SoakedServer) -> bool:
    """Whether no session is left soon after the last lease has run out."""
    deadline = time.monotonic() + LEASE_SECONDS + _CALLS_SECONDS
    while time.monotonic() < deadline:
        if server.census() == {"open": 0, "clients": 0}:
            return True
        time.sleep(0.25)
    return False


def judge(outcome: Outcome, complaints: list[str]) -> None:
    """Add to `faults` what the figures say is wrong; `complaints` are the clients'."""
    warm, end = outcome.memory
    if end - warm > max(MEMORY_SHARE * warm, MEMORY_MIB):
        outcome.faults.append(f"memory grew by {end - warm:.1f} MiB")
    if outcome.child_mib > CHILD_MIB:
        outcome.faults.append(f"a process that it has started holds {outcome.child_mib:.0f} MiB")
    if outcome.threads[1] > outcome.threads[0]:
        outcome.faults.append("threads are left")
    more = max(0, outcome.children[1] - outcome.children[0])
    if outcome.files[1] > outcome.files[0] + _SPARE_FILES + _FILES_OF_A_CHILD * more:
        outcome.faults.append("files are left open")
    if outcome.counts["wrong"]:
        outcome.faults.append(f"{outcome.counts['wrong']} walks told something else")
    if not outcome.counts["episodes"]:
        outcome.faults.append("no episode came to its end")
    outcome.faults += complaints[:3]


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.soak", description=__doc__)
    parser.add_argument("--environments", nargs="+", default=None, help="default: all that start")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--sessions", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=Path, help="folder of detective.z5, for that environment")
    given = parser.parse_args()
    # As in the Makefile.
    environments = Path(__file__).parents[1] / ".agentc" / "software"
    os.environ.setdefault("AGENTC_SOFTWARE", str(environments))
    failed = False
    for environment in given.environments or served_environments():
        try:
            outcome = soak(
                environment,
                seconds=60 * given.minutes,
                sessions=given.sessions,
                seed=given.seed,
                files=given.files,
            )
        except NotHereError as error:
            print(f"{environment}: skipped: {error}", flush=True)
            failed = failed or given.environments is not None
            continue
        print(outcome.line(), flush=True)
        failed = failed or bool(outcome.faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
