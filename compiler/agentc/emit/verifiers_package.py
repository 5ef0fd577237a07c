"""Writes an environment as a package of verifiers' format: a taskset and the environment that plays
its tasks in its own process, opened from the program and the settings of a lease.

In the texts `{name}` is the package's name, `{Name}` that of its classes. The layout is what
`vf-init` of 0.4 makes, and what its loaders read: a module whose `__all__` has a Taskset and an
Env.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from agentc.emit.environment_package import ExportedEntry, ExportError, write_texts, write_whole

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{dashed}"
version = "{version}"
description = "{doc}"
requires-python = ">=3.11"
dependencies = ["verifiers>=0.4,<0.5"]

[tool.hatch.build.targets.wheel]
packages = ["{name}"]
"""

INIT = '''\
"""{doc}"""

from {name}.taskset import {Name}Env, {Name}Taskset

__all__ = ["{Name}Env", "{Name}Taskset"]
'''

TASKSET = '''\
"""The tasks, and the environment that plays one: the world takes the user's turns."""

import sys
from functools import cache
from pathlib import Path
from typing import Literal

import verifiers.v1 as vf

HERE = Path(__file__).resolve().parent
SAY = {{
    "react": "You act in a text world. End each reply with one action in a line of its own, as "
    "`Action: ...`; thoughts may be before it.",
    "action_only": "You act in a text world. Each reply is one action and nothing else.",
}}


@cache
def world():
    """The world, with the settings of environment.json; it is opened when it is first asked."""
    sys.path.insert(0, str(HERE / "packages"))
    from agentc_backends.agents.exported.world import ExportedWorld

    return ExportedWorld(HERE / "environment.json")


class {Name}Config(vf.TasksetConfig):
    split: Literal[{split_names}] = "{split}"
    """Which tasks."""
    seed: int = 0
    """The world's, where it has chance."""
    reply_format: Literal["react", "action_only"] = "react"
    """How an action is in a reply."""


class {Name}Data(vf.TaskData):
    seed: int
    reply_format: Literal["react", "action_only"]


class {Name}Task(vf.Task[{Name}Data, vf.State, vf.TaskConfig]):
    pass


class {Name}EnvConfig(vf.EnvConfig):
    # A chat loop that runs nothing of the model needs no container.
    player: vf.AgentConfig = vf.AgentConfig(
        harness={{"id": "null"}}, runtime=vf.SubprocessConfig(), max_turns={max_turns}
    )


class {Name}Env(vf.Env[{Name}EnvConfig]):
    async def run(self, task, agents):
        data = task.data
        episode = world().begin(data.name, seed=data.seed, reply_format=data.reply_format)
        try:
            async with agents.player.interaction(task) as interaction:
                segment = await interaction.turn(episode.observation)
                while not segment.terminated:
                    episode.answer(segment.last_reply)
                    if episode.done:
                        break
                    segment = await interaction.turn(episode.observation)
        finally:
            episode.close()
        interaction.trace.record_reward("reward", episode.reward)
        interaction.trace.record_metric("success", episode.reward >= {success})
        interaction.trace.record_metric("invalid_replies", episode.invalid)


class {Name}Taskset(vf.Taskset[{Name}Task, {Name}Config]):
    def load(self):
        chosen = self.config
        for name in world().splits()[chosen.split]:
            data = {Name}Data(
                name=name,
                system_prompt=SAY[chosen.reply_format],
                seed=chosen.seed,
                reply_format=chosen.reply_format,
            )
            yield {Name}Task(data, chosen.task)
'''

README = """\
# {title}

{doc} Exported by `agentc dev export verifiers` ({release}) from `{backend}`.

```sh
uv pip install .
vf-eval {dashed} -n 3 --env.taskset.split {split} --model NAME --client.base-url http://HOST/v1
```

Rewards of an episode run from {low} to {high}, a success has at least {success} (metric `success`).
Splits: {tasks}. The world takes the user's turns: the first one is the task, each further one what
an action led to. An episode has at most {max_turns} replies (`--env.player.max-turns`).

| setting of the taskset | means |
|---|---|
| `split` | which tasks; `{split}` by default |
| `reply_format` | `react`: an action is behind `Action:`; `action_only`: it is the reply |
| `seed` | of the world, where it has chance |
| `system_prompt` | a file with your text, which replaces the one that states the format |

| file | is |
|---|---|
| `{name}/taskset.py` | the taskset, and the environment that plays its tasks |
| `{name}/environment.json` | the world's program and its settings |
| `{name}/packages/` | agentc's runtime and its backends, as they were; they need no other package |
"""


_PROBE = """\
import sys
from pathlib import Path
here = Path(sys.argv[1])
sys.path.insert(0, str(here / "packages"))
from agentc_backends.agents.exported.world import ExportedWorld
for split, tasks in ExportedWorld(here / "environment.json").splits().items():
    print(split, len(tasks), sep="\\t")
"""


def write_verifiers_package(target: Path, name: str, entry: ExportedEntry) -> int:
    """The number of files written; `target` appears whole, or not at all. The world is opened once
    from what was written. Raises ExportError, BundleError, OSError."""
    entry.check()
    if not entry.lease.inside:
        raise ExportError(
            f"{entry.backend.id} needs its server under these settings, and a taskset plays in the "
            "process of verifiers; `agentc dev export openenv` writes a package with a server"
        )
    return write_whole(target, lambda draft: _write(draft, name, entry))


def _write(draft: Path, name: str, entry: ExportedEntry) -> None:
    module = draft / name
    module.mkdir()
    entry.write_world(module)
    splits = _opened(module)
    words = entry.words(name) | {
        "split": next(iter(splits)),
        "split_names": ", ".join(f'"{split}"' for split in splits),
        "tasks": ", ".join(f"`{split}` ({count})" for split, count in splits.items()),
        "max_turns": entry.backend.max_turns,
    }
    write_texts(draft, {"pyproject.toml": PROJECT, "README.md": README}, words)
    write_texts(module, {"__init__.py": INIT, "taskset.py": TASKSET}, words)


def _opened(module: Path) -> dict[str, int]:
    """The numbers of tasks of the splits, as a Python says that has its standard library alone:
    what else a world needs would have to be in verifiers' environment. Raises ExportError."""
    command = [sys.executable, "-I", "-S", "-c", _PROBE, str(module)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:]
        raise ExportError(
            "the world cannot be opened from a package that has only the standard library: "
            + "".join(last).rpartition("Error: ")[2]
            + "; `agentc dev export openenv` brings packages along"
        )
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return {split: int(count) for split, count in lines}
