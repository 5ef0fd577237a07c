"""One client process of the soak: `python -m benchmarks.soak_player WALKS URL SESSIONS SEED LOG`.

It plays walks in so many sessions at a time until it is killed, holds what it is told against what
the walk told alone, and writes its counts to LOG, a line of JSON twice a second. The token is read
from AGENTC_TOKEN. Neighbour: `soak.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentc.program.child import die_with_parent
from agentc_backends import clients

LEASE_SECONDS = 4.0
_RETRY = clients.RetryPolicy(attempts=4, base_s=0.1, cap_s=1.0, patience_s=60.0)


async def rows_of(
    environment: clients.EnvironmentClient, walk: Mapping[str, Any], counts: Counter[str]
) -> list[list[Any]]:
    """What a walk tells: [observation, reward, done] of its opening and of each step."""
    session = await environment.create()
    try:
        results = [await environment.reset(session, walk["task"], walk["seed"])]
        for action in walk["actions"]:
            if results[-1].done:
                break
            results.append(await environment.step(session, action))
            counts["steps"] += 1
        return [[each.observation, each.reward, each.done] for each in results]
    finally:
        try:
            await environment.close(session)
        except clients.ServiceError:
            counts["unclosed"] += 1


async def play(walks: list[dict[str, Any]], url: str, sessions: int, seed: int, log: Path) -> None:
    counts: Counter[str] = Counter()
    chance = random.Random(seed)
    limits = clients.RateLimits(concurrency=sessions)
    environment = clients.EnvironmentClient(
        url, os.environ["AGENTC_TOKEN"], retry=_RETRY, limits=limits, lease_s=LEASE_SECONDS
    )

    async def episodes() -> None:
        while True:
            walk = chance.choice(walks)
            try:
                told = await rows_of(environment, walk, counts)
            except clients.BadRequestError as error:
                counts["wrong"] += 1
                print(f"{walk['task']}: {error}", file=sys.stderr, flush=True)
            except clients.ServiceError as error:
                counts["void"] += 1
                with log.with_suffix(".void").open("a", encoding="utf-8") as voided:
                    voided.write(json.dumps([time.time(), str(error)]) + "\n")
                await asyncio.sleep(0.2)
            else:
                counts["episodes"] += 1
                if told != walk["rows"]:
                    counts["wrong"] += 1
                    print(json.dumps({"walk": walk, "told": told}), file=sys.stderr, flush=True)

    async def tell() -> None:
        with log.open("a", encoding="utf-8") as out:
            while True:
                await asyncio.sleep(0.5)
                out.write(json.dumps(counts) + "\n")
                out.flush()

    await asyncio.gather(tell(), *(episodes() for _ in range(sessions)))


if __name__ == "__main__":
    die_with_parent(signal.SIGTERM)
    walks_file, url, sessions, seed, log = sys.argv[1:]
    found = json.loads(Path(walks_file).read_text(encoding="utf-8"))
    asyncio.run(play(found, url, int(sessions), int(seed), Path(log)))
