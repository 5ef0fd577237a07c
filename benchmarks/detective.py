"""Detective's server beside bare jericho: `PYTHON -m benchmarks.detective GAME`.

PYTHON is that of the software stack `jericho` (`agentc software ls`), with `compiler` and
`backends` on PYTHONPATH. Both sides make ArCHer's observation at every step of the same random
walks over legal actions. `--check N` instead compares, in N states of random walks, the legal
actions that are kept with those found for the state itself, and what an action does in both.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.served import Server, call, started

_STEPS = 50
_TURNS = re.compile(r"in \d+ turns?")


def bare(game: Path, episodes: int) -> tuple[list[list[str]], float, float, float]:
    """Random walks on jericho itself with ArCHer's observation: the actions, steps a second with
    and without legal actions, milliseconds of a reset."""
    import jericho
    import jericho.util

    # The spaCy model that it would download names nothing that the tree of objects does not.
    jericho.util.extract_objs = lambda text: set()
    environment = jericho.FrotzEnv(str(game), seed=0)
    walks: list[list[str]] = []
    draw, steps, start = random.Random(0), 0, time.perf_counter()
    for _ in range(episodes):
        environment.reset()
        walk: list[str] = []
        for _ in range(_STEPS):
            legal = sorted(environment.get_valid_actions(use_parallel=False))
            walk.append(draw.choice(legal))
            told = environment.step(walk[-1])
            looked(environment)
            steps += 1
            if told[2]:
                break
        walks.append(walk)
    whole = steps / (time.perf_counter() - start)
    start = time.perf_counter()
    for walk in walks:
        environment.reset()
        for action in walk:
            environment.step(action)
            looked(environment)
    plain = steps / (time.perf_counter() - start)
    times = []
    for _ in range(50):
        start = time.perf_counter()
        environment.reset()
        times.append(time.perf_counter() - start)
    return walks, whole, plain, 1000 * statistics.median(times)


def looked(environment: Any) -> None:
    for command in ("look", "inventory"):
        state = environment.get_state()
        environment.step(command)
        environment.set_state(state)


def served(server: Server, walks: Sequence[Sequence[str]], clients: int) -> float:
    """Steps a second, resets included."""

    def one(index: int) -> int:
        client, steps = server.client(), 0
        number = call(client, "/create")["id"]
        for walk in walks[index::clients]:
            call(client, "/reset", id=number, task_id="detective")
            for action in walk:
                call(client, "/step", id=number, action=action)
                steps += 1
        call(client, "/close", id=number)
        return steps

    start = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        steps = sum(pool.map(one, range(clients)))
    return steps / (time.perf_counter() - start)


def reset_ms(server: Server) -> float:
    client, times = server.client(), []
    number = call(client, "/create")["id"]
    for _ in range(50):
        start = time.perf_counter()
        call(client, "/reset", id=number, task_id="detective")
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def compare(game: Path, states: int) -> int:
    """Walks with words that change nothing in between, so that time and parser differ."""
    from agentc_backends.environments.detective.interpreter import GameMachine
    from agentc_backends.environments.detective.settings import DETECTIVE

    kept, apart = GameMachine(str(game), DETECTIVE.scratch), GameMachine(str(game), ())
    draw, known = random.Random(1), dict[str, list[str]]()
    seen = other_lists = other_effects = 0
    state = kept.opening.state
    while seen < states:
        idle = kept.act(state, draw.choice(("wait", "examine me", "frob", "read paper")))
        if idle.over:
            state = kept.opening.state
            continue
        state = idle.state
        key = kept.see(state).key
        if key not in known:
            known[key] = kept.legal(state)
        own = apart.legal(state)
        seen += 1
        if own != known[key]:
            other_lists += 1
            print(f"other legal actions: kept {known[key]}, own {own}")
        action = draw.choice(known[key])
        told, canonical = kept.act(state, action), kept.act(kept._canonical(state), action)
        # Whoever dies is told how many turns it took.
        texts = {_TURNS.sub("", one.text) for one in (told, canonical)}
        if len(texts) > 1 or (told.score, told.over) != (canonical.score, canonical.over):
            other_effects += 1
            print(f"{action}: {told.text!r}, and in the canonical state {canonical.text!r}")
        state = kept.opening.state if told.over or draw.random() < 0.02 else told.state
    print(f"{seen} states, {len(known)} keys: {other_lists} other lists of legal actions, "
          f"{other_effects} actions with another effect")  # fmt: skip
    return 1 if other_lists or other_effects else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.detective", description=__doc__)
    parser.add_argument("game", type=Path, help="detective.z5")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--check", type=int, default=0, metavar="N", help="compare N states only")
    options = parser.parse_args()
    if options.check:
        return compare(options.game, options.check)
    walks, whole, plain, bare_reset = bare(options.game, options.episodes)
    with (
        tempfile.TemporaryDirectory() as cache,
        started(
            "detective", ("--game", str(options.game.absolute())), {"XDG_CACHE_HOME": cache}
        ) as server,
    ):
        first = served(server, walks, 1)
        again = served(server, walks, 1)
        many = served(server, walks * 2, options.clients)
        reset = reset_ms(server)
    steps = sum(len(walk) for walk in walks)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    rows = (
        ("jericho, ArCHer's observation (look, inventory, legal actions)", whole, bare_reset),
        ("jericho, look and inventory alone", plain, None),
        ("server, one client, nothing remembered yet", first, None),
        ("server, one client, the same again", again, reset),
        (f"server, {options.clients} clients, the same again", many, None),
    )
    print(f"{options.episodes} random episodes, {steps} steps\n")
    print("| | steps a second | a reset |\n|---|---|---|")
    for what, rate, milliseconds in rows:
        told = "" if milliseconds is None else f"{milliseconds:.1f} ms"
        print(f"| {what} | {rate:.3g} | {told} |")
    print(f"\nLargest process of the server's side: {memory} MB.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
