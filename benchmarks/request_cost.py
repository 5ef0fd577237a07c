"""CPU of one request, by part: of the client, and of a model server under 32 requests at once.

`python -m benchmarks.request_cost` asks the scripted server: HTTP and nothing else. With `--model
DIR --rows trajectories.jsonl --decode JSON --python PYTHON` it repeats a recorded exploration on
the embedded server of that interpreter's environment. Neighbour: `offline_engine.py`, no HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentc_backends.agents.common.seeds import turn_seed
from agentc_backends.clients import ChatClient, RateLimits
from benchmarks.reduced import ROOT

IN_FLIGHT = 32
REPEATS = 4
_RULES = json.dumps([{"reply": "Thought: wood. Action: get 1 oak log"}])
_TALK = [
    {"role": "assistant" if i % 2 else "user", "content": "Observation: you see an oak log " * 3}
    for i in range(5)
]
Request = tuple[list[dict[str, str]], int]
"""Messages and the seed of the request."""


def episodes_of(rows: Path | None) -> list[list[Request]]:
    """The requests of each episode in order."""
    if rows is None:
        return [[(_TALK, seed) for seed in range(20)] for _ in range(IN_FLIGHT)]
    lines = rows.read_text(encoding="utf-8").splitlines()
    return [list(_requests(json.loads(line))) for line in lines]


def _requests(row: dict[str, Any]) -> Iterator[Request]:
    talk = [{"role": m["role"], "content": m["content"]} for m in row["messages"]]
    places = range(row["prompt_length"], len(talk))
    for turn, at in enumerate(at for at in places if talk[at]["role"] == "assistant"):
        yield talk[:at], turn_seed(row["seed"], turn)


def parts_cpu(process: int) -> Mapping[str, float]:
    """Seconds of CPU of a server: of its first thread, of its others, and of its engine, the
    process that it has started."""
    found: defaultdict[str, float] = defaultdict(float)
    for thread in Path(f"/proc/{process}/task").iterdir():
        name = "event loop" if thread.name == str(process) else "other threads"
        found[name] += _cpu(thread)
        for child in (thread / "children").read_text().split():
            found["engine"] += sum(map(_cpu, Path(f"/proc/{child}/task").iterdir()))
    return found


def _cpu(thread: Path) -> float:
    return int((thread / "schedstat").read_text().split()[0]) / 1e9


async def measure(
    url: str, process: int, episodes: Sequence[list[Request]], decode: dict[str, Any]
) -> None:
    """Print a line for each repeat."""
    limits = RateLimits(concurrency=IN_FLIGHT)
    count = sum(map(len, episodes))
    async with ChatClient(url, None, "policy", limits=limits) as chat:
        for _ in range(REPEATS):
            waiting = iter(episodes)

            async def play(waiting: Iterator[list[Request]] = waiting) -> int:
                return sum(
                    [
                        (await chat.chat(talk, seed=seed, **decode)).completion_tokens
                        for episode in waiting
                        for talk, seed in episode
                    ]
                )

            before, own = parts_cpu(process), time.process_time()
            tokens = sum(await asyncio.gather(*(play() for _ in range(IN_FLIGHT))))
            own, after = time.process_time() - own, parts_cpu(process)
            spent = {name: seconds - before.get(name, 0.0) for name, seconds in after.items()}
            parts = {"client": own, **spent}
            shown = ", ".join(f"{name} {1000 * s / count:.2f}" for name, s in parts.items())
            print(f"{count} requests, {tokens} tokens; ms of CPU a request: {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model")
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--decode", type=json.loads, default={"max_tokens": 64, "stop": ["\n"]})
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        program = "transformers" if options.model else "scripted"
        argv = [options.python, "-m", f"agentc_backends.servers.{program}.job_serve"]
        argv += [
            "--die-with-parent",
            "--model",
            options.model or folder,
            "--ready-file",
            str(ready),
        ]
        argv += [] if options.model else ["--rules", _RULES, "--max-model-len", "4096"]
        path = ":".join(str(ROOT / name) for name in ("compiler", "backends"))
        variables = {**os.environ, "PYTHONPATH": path, "AGENTC_TOKEN": ""}
        server = subprocess.Popen(argv, env=variables, stderr=subprocess.DEVNULL)
        try:
            while not ready.exists():
                if server.poll() is not None:
                    raise SystemExit("the server did not start")
                time.sleep(0.05)
            address = json.loads(ready.read_text())
            url = f"http://{address['host']}:{address['port']}"
            asyncio.run(measure(url, server.pid, episodes_of(options.rows), options.decode))
        finally:
            server.terminate()
            server.wait(30)


if __name__ == "__main__":
    main()
