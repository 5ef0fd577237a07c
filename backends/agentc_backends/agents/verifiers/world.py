"""The taskset in this process: its tasks, and one episode of one of them by verifiers' own means.

The only module that imports verifiers, which it does when it is asked. Neighbours: `home.py`,
which comes first; `play.py`, which records.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc_backends.agents.common.failures import FatalError
from agentc_backends.environments.external.task_lists import task_numbers
from agentc_backends.user_files.layout import lay_out

_KEY = "AGENTC_EPISODE_KEY_"


@dataclass(frozen=True, slots=True)
class TasksetOutcome:
    """How an episode went: the taskset's `reward`, scaled, or None where it gave none; whether it
    ended by itself; what went `wrong`, where something did."""

    reward: float | None
    done: bool
    wrong: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksetWorld:
    """The environment object of verifiers, with the tasks of the splits by their ids."""

    environment: Any
    tasks: Mapping[str, Any]
    splits: Mapping[str, list[str]]
    scale: float

    def meta(self) -> dict[str, Any]:
        """As an environment says it of itself (`common/tasks.py`)."""
        return {"splits": self.splits, "reward_kind": "terminal"}

    async def play(self, task_id: str, url: str, key: str, name: str, model: str) -> TasksetOutcome:
        """One episode against the endpoint at `url`, asked with `key`."""
        import verifiers.v1 as vf

        variable = _KEY + name.upper().replace("-", "_")
        os.environ[variable] = key
        try:
            context = vf.ModelContext(
                client=vf.EvalClientConfig(base_url=f"{url}/v1", api_key_var=variable),
                model=model,
                sampling=vf.SamplingConfig(),
            )
            [slot] = self.environment.slots(self.tasks[task_id])
            episode = await self.environment.run_slot(slot, context)
        finally:
            os.environ.pop(variable, None)
        traces = [trace for trace in episode.traces if trace.agent.trainable]
        errors = [*episode.errors, *(e for t in traces if (e := t.last_error) is not None)]
        wrong = f"{errors[0].type}: {errors[0].message}" if errors else None
        if not episode.ok or len(traces) != 1:
            return TasksetOutcome(
                None, False, wrong or f"its environment made {len(traces)} traces"
            )
        [trace] = traces
        done = trace.stop_condition not in ("max_turns", "context_length")
        return TasksetOutcome(float(trace.reward) * self.scale, done, None)


@asynccontextmanager
async def opened(
    told: Mapping[str, Any],
    folder: Path,
    *,
    harness: Mapping[str, Any],
    turns: int,
    longest_s: float,
) -> AsyncIterator[TasksetWorld]:
    """The taskset that `told` names, with its shared servers up; its files are laid out in
    `folder`. `turns` bounds an episode. Raises FatalError where it cannot be used."""
    sys.path.insert(0, str(lay_out(folder, told["files"])))
    try:
        environment = _environment(told, harness, turns, longest_s)
        tasks, splits = _tasks(told, environment.taskset)
    except FatalError:
        raise
    except Exception as error:  # whatever the taskset's own code raises
        raise FatalError(f"the taskset {told['taskset']!r} cannot be used: {error}") from error
    async with environment.serving():
        yield TasksetWorld(
            environment=environment, tasks=tasks, splits=splits, scale=told["reward"]["scale"]
        )


def _environment(
    told: Mapping[str, Any], harness: Mapping[str, Any], turns: int, longest_s: float
) -> Any:
    from verifiers.v1.configs.agent import AgentConfig
    from verifiers.v1.utils.loaders import env_config_type, load_environment, load_harness

    taskset = told["taskset"]
    kind = env_config_type(taskset)
    seats = {n: f.default for n, f in kind.model_fields.items()
             if isinstance(f.default, AgentConfig)}  # fmt: skip
    if len(seats) != 1:
        raise FatalError(
            f"the environment of the taskset {taskset!r} seats {len(seats)} agents "
            f"({', '.join(seats)}); a stage has one policy, so one is the most"
        )
    [(seat, default)] = seats.items()
    own = {} if default.harness is None else default.harness.model_dump()
    config = kind.model_validate(
        {
            "taskset": {**told["config"], "id": taskset},
            "timeout": {"episode": longest_s},
            seat: {
                "harness": {"id": "null", **own, **harness},
                "runtime": {"type": "subprocess"},
                "max_turns": turns,
            },
        }
    )
    chosen = load_harness(getattr(config, seat).harness)
    if chosen.EXECUTES_CODE or chosen.NEEDS_CONTAINER:
        raise FatalError(
            f"the harness {chosen.config.id!r} runs commands of the model, or needs a container, "
            'and a job has no box for it; `options: {harness: {id: "null"}}` is a chat loop'
        )
    return load_environment(config)


def _tasks(told: Mapping[str, Any], taskset: Any) -> tuple[dict[str, Any], dict[str, list[str]]]:
    numbers = task_numbers(told["taskset"], told["splits"])
    found = {task.data.idx: task for task in itertools.islice(taskset, max(numbers.values()) + 1)}
    missing = [number for number in numbers.values() if number not in found]
    if missing:
        raise FatalError(
            f"the taskset {told['taskset']!r} has {len(found)} tasks, numbered from 0, and a split "
            f"names {missing[0]}"
        )
    splits = {
        name: list(task_numbers(told["taskset"], {name: text}))
        for name, text in told["splits"].items()
    }
    return {task_id: found[number] for task_id, number in numbers.items()}, splits
