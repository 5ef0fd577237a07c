"""ScienceWorld's server beside the bare package, and a soak: `PYTHON -m benchmarks.sciworld`.

PYTHON is that of the software stack `sciworld` (`agentc software ls`), with `compiler` and
`backends` on PYTHONPATH. Steps a second are of gold paths, so of actions that do something. The
soak plays many short episodes from several clients and watches processes and memory.
"""

from __future__ import annotations

import argparse
import http.client
import os
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.served import Server, call, started

TASKS = (
    "boil:1", "use-thermometer:2", "power-component:1", "test-conductivity:4", "find-animal:5",
    "grow-plant:3", "chemistry-mix:2", "lifespan-longest-lived:6", "identify-life-stages-1:1",
    "inclined-plane-determine-angle:2",
)  # fmt: skip
_MOST_ACTIONS = 40
_ENDLESS = ("--step-limit", "none")


def play(client: http.client.HTTPConnection, task: str, actions: Sequence[str]) -> int:
    """Steps of one episode."""
    number = call(client, "/create")["id"]
    call(client, "/reset", id=number, task_id=task)
    steps = 0
    for action in actions:
        steps += 1
        if call(client, "/step", id=number, action=action)["done"]:
            break
    call(client, "/close", id=number)
    return steps


def gold_paths(server: Server) -> dict[str, list[str]]:
    client = server.client()
    paths = {}
    for task in TASKS:
        steps = call(client, "/expert", task_id=task)["steps"]
        paths[task] = [step["action"] for step in steps][:_MOST_ACTIONS]
    return paths


def bare(paths: dict[str, list[str]]) -> tuple[float, float]:
    """Steps a second of the package's own class: with its `step`, and with the simulator's alone,
    each with the loads."""
    from scienceworld import ScienceWorldEnv

    environment = ScienceWorldEnv("", None, 10_000)
    rates = []
    for stock in (True, False):
        steps, start = 0, time.perf_counter()
        for task, actions in paths.items():
            name, _, variation = task.partition(":")
            environment.load(name, int(variation), "easy")
            for action in actions:
                if stock:
                    environment.step(action)
                else:
                    environment.server.step(action)
                    environment.server.getScore()
                    environment.server.getCompleted()
                steps += 1
        rates.append(steps / (time.perf_counter() - start))
    environment.close()
    return rates[0], rates[1]


def served(server: Server, paths: dict[str, list[str]], clients: int) -> float:
    jobs = list(paths.items()) * max(1, clients // 2)

    def one(index: int) -> int:
        client = server.client()
        return sum(play(client, task, actions) for task, actions in jobs[index::clients])

    start = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        steps = sum(pool.map(one, range(clients)))
    return steps / (time.perf_counter() - start)


def forks(server: Server, paths: dict[str, list[str]]) -> tuple[float, float]:
    """Seconds to stand where a session of 20 actions stands: by /fork, and by replay over HTTP."""
    client = server.client()
    by_fork = by_replay = 0.0
    for task, actions in paths.items():
        prefix = actions[:20]
        source = call(client, "/create")["id"]
        call(client, "/reset", id=source, task_id=task)
        for action in prefix:
            call(client, "/step", id=source, action=action)
        start = time.perf_counter()
        fork = call(client, "/fork", id=source)["id"]
        by_fork += time.perf_counter() - start
        start = time.perf_counter()
        replay = call(client, "/create")["id"]
        call(client, "/reset", id=replay, task_id=task)
        for action in prefix:
            call(client, "/step", id=replay, action=action)
        by_replay += time.perf_counter() - start
        for number in (source, fork, replay):
            call(client, "/close", id=number)
    return by_fork / len(paths), by_replay / len(paths)


def soak(episodes: int, clients: int) -> None:
    """Short episodes, JVMs replaced as they go; prints processes and memory on the way."""
    with started("sciworld", (*_ENDLESS, "--processes", "2", "--loads-each", "150")) as server:
        paths = {task: actions[:5] for task, actions in gold_paths(server).items()}
        seen: set[int] = set()
        done = steps = 0
        start = time.perf_counter()
        print(
            "| episodes | JVMs | server MB | JVMs MB, together | steps/s |\n|---|---|---|---|---|"
        )
        connections = [server.client() for _ in range(clients)]
        while done < episodes:
            batch = min(100, episodes - done)
            chosen = [TASKS[(done + k) % len(TASKS)] for k in range(batch)]

            def one(index: int, chosen: Sequence[str] = chosen) -> int:
                own = chosen[index::clients]
                return sum(play(connections[index], task, paths[task]) for task in own)

            with ThreadPoolExecutor(clients) as pool:
                steps += sum(pool.map(one, range(clients)))
            done += batch
            running = server.children()
            seen.update(running)
            memory = sum(resident_mb(pid) for pid in running)
            own_memory = resident_mb(server.process.pid)
            rate = steps / (time.perf_counter() - start)
            print(f"| {done} | {len(running)} | {own_memory} | {memory} | {rate:.0f} |", flush=True)
    left = [pid for pid in seen if is_java(pid)]
    print(f"{len(seen)} JVMs seen, {len(left)} left after SIGTERM of the server")
    with started("sciworld", (*_ENDLESS, "--processes", "2")) as server:
        gold_paths(server)
        seen = set(server.children())
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait()
        end = time.monotonic() + 10
        while time.monotonic() < end and any(is_java(pid) for pid in seen):
            time.sleep(0.1)
        left = [pid for pid in seen if is_java(pid)]
        print(f"{len(seen)} JVMs seen, {len(left)} left after SIGKILL of the server")


def resident_mb(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def is_java(pid: int) -> bool:
    try:
        return b"java" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.sciworld", description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000, help="of the soak; 0: none")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--no-rates", action="store_true", help="the soak only")
    options = parser.parse_args()
    if not options.no_rates:
        cores = str(len(os.sched_getaffinity(0)))
        with started("sciworld", (*_ENDLESS, "--processes", cores)) as server:
            paths = gold_paths(server)
            # Once before, for a JVM that just started compiles what it runs.
            served(server, paths, options.clients)
            one, many = served(server, paths, 1), served(server, paths, options.clients)
            by_fork, by_replay = forks(server, paths)
        stock, light = bare(paths)
        print("| steps a second, loads included | |\n|---|---|")
        print(f"| the package's `step` | {stock:.0f} |")
        print(f"| the package's simulator, step, score and end only | {light:.0f} |")
        print(f"| server, one client | {one:.0f} |")
        print(f"| server, {options.clients} clients | {many:.0f} |")
        print(f"| a fork after 20 actions | {by_fork:.2f} s, replay over HTTP {by_replay:.2f} s |")
    if options.episodes:
        soak(options.episodes, options.clients)


if __name__ == "__main__":
    main()
