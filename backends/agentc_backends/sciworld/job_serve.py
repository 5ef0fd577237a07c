"""Serves ScienceWorld until SIGTERM: `python -m agentc_backends.sciworld.job_serve`.

The server is that of `environment_server`; what is read here are ScienceWorld's own options. Its
JVMs end with it, however it ends.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import sys
from collections.abc import Sequence
from functools import partial

from agentc_backends.environment_server.environment import EnvironmentFailure
from agentc_backends.environment_server.process import add_server_arguments, serve
from agentc_backends.sciworld.environment import Rules, ScienceWorldEnvironment, World
from agentc_backends.sciworld.java import NoJavaError, find_java
from agentc_backends.sciworld.jvm import Jvm
from agentc_backends.sciworld.pool import JvmPool
from agentc_backends.sciworld.splits import DEFAULT, SplitError, Text, read_splits

_EPISODES_AT_ONCE = 64


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    processes = options.processes or len(os.sched_getaffinity(0))
    try:
        splits: dict[str, Text] = (
            read_splits(DEFAULT, (), lambda _: None)
            if options.splits is None
            else json.loads(options.splits)
        )
        java = find_java()
    except (NoJavaError, SplitError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    pool = JvmPool(
        partial(Jvm, java, heap_mb=options.heap_mb),
        processes=processes,
        episodes_at_once=_EPISODES_AT_ONCE,
        loads_each=options.loads_each,
    )
    atexit.register(pool.close)
    try:
        # What is wrong with the simulator shows now, not in the middle of a run.
        pool.warm()
    except EnvironmentFailure as error:
        print(error, file=sys.stderr)
        return 2
    rules = Rules(
        simplifications=options.simplifications,
        step_limit=options.step_limit,
        score=options.score,
        negative=options.negative,
        opening=options.opening,
        snap_actions=options.snap_actions,
        expert_thoughts=options.expert_thoughts,
    )
    world = World(pool, rules, splits)
    options.max_sessions = min(options.max_sessions, processes * _EPISODES_AT_ONCE)
    try:
        return serve(partial(ScienceWorldEnvironment, world), options)
    finally:
        pool.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sciworld.job_serve", description=__doc__)
    add_server_arguments(parser)
    parser.add_argument("--splits", help="JSON: split -> task -> ranges of variations")
    parser.add_argument("--simplifications", default="easy", help="words with commas, or easy")
    parser.add_argument("--step-limit", choices=("per_task", "uniform", "none"), default="per_task")
    parser.add_argument("--score", choices=("best", "last"), default="best")
    parser.add_argument("--negative", choices=("keep", "zero"), default="keep")
    parser.add_argument("--opening", choices=("task", "task_and_room"), default="task_and_room")
    parser.add_argument("--snap-actions", action="store_true")
    parser.add_argument("--expert-thoughts", choices=("plain", "none"), default="plain")
    parser.add_argument("--processes", type=int, default=0, help="JVMs; 0: one for each core")
    parser.add_argument("--heap-mb", type=int, default=512, help="of each JVM")
    parser.add_argument("--loads-each", type=int, default=400, help="episodes until a JVM is "
                        "replaced")  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
