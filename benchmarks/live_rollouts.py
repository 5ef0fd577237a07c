"""Episodes of a model in training beside its engine alone, on the same requests, in an interpreter
with torch: `python -m benchmarks.live_rollouts MODEL [--episodes N] [--rounds N]`.

An iteration of `online_rl` plays ten-object Twenty Questions, the whole conversation shown, with
the checkpoint MODEL (as the store of `specs/archer/tiny.yaml` has it). Its requests are then
submitted to the engine as a rollout would, with prompts tokenised beforehand and no game between
(`offline_engine.py`). Both draw as many tokens, which is asserted. By turns; wanted is 0.8 of the
engine's rate.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as a job is started

import numpy
import torch

from agentc_backends.agents.common.connect import AgentGymWorld
from agentc_backends.agents.common.episode import Attempt, EpisodeRules, split_tasks
from agentc_backends.agents.common.prompts import EpisodePrompt
from agentc_backends.agents.common.seeds import turn_seed
from agentc_backends.agents.rollout.play import TurnRules, play
from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.engine.generation import Engine, EngineLimits
from agentc_backends.engine.model import load_checkpoint
from agentc_backends.environments.server.inside import InsideEnvironment
from agentc_backends.environments.server.program import opener_of
from agentc_backends.openai_api.chat_text import ChatText
from agentc_backends.trainers.online_rl.sampling import Decode, LivePolicy, Sampler
from benchmarks.offline_engine import Replay

_GAME = {
    "game": "twenty_questions", "objects": "subset", "splits": "together",
    "reward": "per_question", "unknown": "no",
}  # fmt: skip
_RULES = EpisodeRules(
    prompt=EpisodePrompt(instruction="", acknowledgement="", examples=(), reply_format="text"),
    split="all",
    reward_range=(-20.0, 0.0),
    reward_kind="sum",
    success_at=1.0,
)
_TURNS = TurnRules(
    max_turns=20, on_invalid="observe", on_overflow="drop_oldest", invalid_message="",
    action_span="line", action_space="optional",
)  # fmt: skip
_LONGEST, _SEED = 14, 100


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(prog="benchmarks.live_rollouts", description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--episodes", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    sides: dict[str, list[tuple[float, float]]] = {"episodes": [], "engine alone": []}
    tokens = 0
    for _ in range(options.rounds):
        (wall, cpu), policy = _played(options.model, options.episodes)
        sides["episodes"].append((wall, cpu))
        (wall, cpu), alone = _alone(options.model, policy)
        sides["engine alone"].append((wall, cpu))
        tokens = sum(len(one.reply) for said in policy.turns.values() for one in said)
        assert alone == tokens, (alone, tokens)
    print(f"{options.episodes} episodes, {tokens} tokens, {options.rounds} times by turns\n")
    print("| what | tokens a second | tokens a second of CPU | as the engine alone, CPU |")
    print("|---|---|---|---|")
    for name, took in sides.items():
        beside = (own[1] / other[1] for own, other in zip(sides["engine alone"], took, strict=True))
        rates = [tokens / median(each) for each in zip(*took, strict=True)]
        print(f"| {name} | {rates[0]:.0f} | {rates[1]:.0f} | {median(beside):.2f} |")


def _played(model: str, episodes: int) -> tuple[tuple[float, float], LivePolicy]:
    """Seconds by the clock and of CPU, and what was said."""
    checkpoint = load_checkpoint(model, "float32")
    policy = LivePolicy(
        Sampler(load_model(Path(model)).eval()),
        ChatText(checkpoint.root, checkpoint.tokenizer),
        checkpoint.tokenizer,
        Decode(max_tokens=_LONGEST, ends=checkpoint.ends),
        checkpoint.context,
    )
    opener = opener_of(["-m", "agentc_backends.environments.guessing_games.job_serve"], _GAME)
    world = AgentGymWorld(InsideEnvironment(opener))

    async def play_all() -> None:
        tasks = split_tasks(await world.meta(), "all", None)
        attempts = [
            Attempt(
                position=n, task_id=tasks[n % len(tasks)], number=n, seed=_SEED + n, prompt_seed=n
            )
            for n in range(episodes)
        ]
        async with policy.acting():
            asked = (play(_RULES, _TURNS, each, policy, world) for each in attempts)
            await asyncio.gather(*asked)

    return _timed(lambda: asyncio.run(play_all())), policy


def _alone(model: str, policy: LivePolicy) -> tuple[tuple[float, float], int]:
    """The same, and how many tokens were drawn."""
    checkpoint = load_checkpoint(model, "float32")
    episodes = [
        [
            (numpy.array(one.prompt, numpy.int32), turn_seed(_SEED + int(name.split("#")[1]), turn))
            for turn, one in enumerate(said)
        ]
        for name, said in policy.turns.items()
    ]
    settings: dict[str, Any] = {
        "temperature": 1.0, "top_p": 1.0, "max_tokens": _LONGEST, "ends": checkpoint.ends,
    }  # fmt: skip
    engine = Engine(checkpoint, EngineLimits(), checkpoint.context)
    work = Replay(episodes, len(episodes), settings)
    return _timed(lambda: engine.run(work)), work.tokens


def _timed(work: Callable[[], None]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    main()
