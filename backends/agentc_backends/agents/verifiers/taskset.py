"""A taskset of verifiers in this process: its tasks, one episode of one of them by verifiers' own
means against the recorder, and its row.

The only module that imports verifiers, which it does when it is called, after `prepare_home`.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentc_backends.agents.common.connect import ChatPolicy
from agentc_backends.agents.common.episode import Attempt, EpisodeRules, Step
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.recording.episodes import (
    UNPROVED,
    PlayedEpisode,
    episode_end,
    episode_record,
    prove,
)
from agentc_backends.agents.recording.exchange import RecordedSession
from agentc_backends.agents.recording.proof import ProvedConversation, Unproved
from agentc_backends.agents.recording.recorder import Recorder
from agentc_backends.clients.errors import ContextOverflowError, InfrastructureError
from agentc_backends.environments.external.task_lists import task_numbers
from agentc_backends.user_files.layout import write_files

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
        """As an environment says it of itself (`agents/common/episode.py`)."""
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
async def open_taskset(
    told: Mapping[str, Any],
    folder: Path,
    *,
    harness: Mapping[str, Any],
    turns: int,
    longest_s: float,
) -> AsyncIterator[TasksetWorld]:
    """The taskset that `told` names, with its shared servers up; its files are laid out in
    `folder`. `turns` bounds an episode. Raises FatalError where it cannot be used."""
    sys.path.insert(0, str(write_files(folder, told["files"])))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksetStage:
    """What all episodes of a stage share."""

    rules: EpisodeRules
    max_turns: int
    on_overflow: Literal["end", "error"]
    world: TasksetWorld
    policy: ChatPolicy
    recorder: Recorder
    model: str


async def play(stage: TasksetStage, attempt: Attempt) -> dict[str, Any]:
    """The episode's row. Raises InfrastructureError where the server failed, FatalError where a
    reward is none that was declared, ContextOverflowError where an overflow is an error."""
    recorded = stage.recorder.open(seed=attempt.seed, most_replies=stage.max_turns)
    try:
        outcome = await stage.world.play(
            attempt.task_id, stage.recorder.url, recorded.key, recorded.name, stage.model
        )
    finally:
        stage.recorder.close(recorded)
    if recorded.failed is not None:
        raise InfrastructureError(recorded.failed)
    if recorded.overflowed and stage.on_overflow == "error":
        raise ContextOverflowError(f"{attempt.id}: a prompt is longer than the context", status=400)
    _check(stage.rules, attempt, outcome)
    episode = _episode(recorded, outcome)
    found = await prove(stage.policy, recorded)
    sure = found if isinstance(found, ProvedConversation) else None
    record = episode_record(stage.rules, attempt, episode, sure)
    end, error = episode_end(stage.rules, episode, record, outcome.wrong)
    row = record.row(end, error)
    if isinstance(found, Unproved) and end != "error":
        row[UNPROVED] = {"reason": found.reason, "detail": found.detail}
    return row


def _check(rules: EpisodeRules, attempt: Attempt, outcome: TasksetOutcome) -> None:
    low, high = rules.reward_range
    if outcome.reward is not None and not low <= outcome.reward <= high:
        raise FatalError(
            f"{attempt.id}: the taskset gave the reward {outcome.reward:g}, and declared are "
            f"{low:g} to {high:g}; say in the environment's entry what its rewards are: "
            "`reward: {lowest: ..., highest: ...}`"
        )


def _episode(recorded: RecordedSession, outcome: TasksetOutcome) -> PlayedEpisode:
    """A step behind each reply, of which the last earns what the taskset gave. What was said in
    between is taken from the request that followed."""
    exchanges = recorded.exchanges
    first = exchanges[0].messages if exchanges else recorded.unanswered
    opening = _text(first[-1]) if first else ""
    episode = PlayedEpisode(recorded=recorded, observation=opening, answered=False)
    for number, after in enumerate(exchanges[1:], start=1):
        episode.steps.append((number, Step(_text(after.messages[-1]), 0.0, False)))
    if exchanges and outcome.reward is not None:
        episode.steps.append((len(exchanges), Step("", outcome.reward, outcome.done)))
    return episode


def _text(message: Mapping[str, Any]) -> str:
    return str(message["content"])
