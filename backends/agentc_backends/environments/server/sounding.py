"""Opens an environment for a moment and tells what its episodes are like: `python -m ... IN OUT`.

For estimates of cost (`agentc.cost.statements`). IN has the lease's `program` and `settings`; OUT
gets the numbers of tasks, and means over a few episodes of the expert, in characters.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any, cast

from agentc_backends.environments.server.environment import Environment, Expert
from agentc_backends.environments.server.program import opener_of

_EPISODES = 24
_PATIENCE_S = 2.0
"""Of episodes, after the first: a slow world tells less."""
_AROUND_REPLY = 16
"""Characters that a prompt's form adds to a thought and an action."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with OUT written."""
    given, out = sys.argv[1:] if arguments is None else arguments
    lease = json.loads(Path(given).read_text(encoding="utf-8"))
    environment = opener_of(lease["program"], lease["settings"])()
    try:
        tasks = {split: environment.tasks(split) for split in environment.splits}
        expert = _expert(environment, tasks) if "expert" in environment.capabilities else None
    finally:
        environment.close()
    told = {"tasks": {split: len(names) for split, names in tasks.items()}, "expert": expert}
    Path(out).write_text(json.dumps(told), encoding="utf-8")
    return 0


def _expert(environment: Environment, tasks: dict[str, Sequence[str]]) -> dict[str, float] | None:
    """Means of an expert's episode; of tasks from all over the splits."""
    everything = [task for names in tasks.values() for task in names]
    chosen = everything[:: max(1, len(everything) // _EPISODES)][:_EPISODES]
    turns: list[float] = []
    prompts: list[float] = []
    replies: list[float] = []
    observations: list[float] = []
    began = time.monotonic()
    for task in chosen:
        if turns and time.monotonic() - began > _PATIENCE_S:
            break
        steps: list[Any] = list(cast(Expert, environment).expert_steps(task, seed=0))
        text, _ = environment.reset(task, seed=0)
        prompts.append(len(text))
        turns.append(len(steps))
        for step in steps:
            replies.append(len(step.thought) + len(step.action) + _AROUND_REPLY)
            observations.append(len(environment.step(step.action)[0]))
    if not replies:
        return None
    return {
        "turns": mean(turns),
        "prompt": mean(prompts),
        "reply": mean(replies),
        "observation": mean(observations),
    }


if __name__ == "__main__":
    sys.exit(main())
