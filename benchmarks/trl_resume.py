"""What is left of a run of GRPO that is cut off: TRL's own resume beside that of `trl.online_rl`.
`python -m benchmarks.trl_resume` in an interpreter with torch and TRL.

Both train the same small policy on the corridor, four gradient steps, two for each generation
batch, with episodes whose seeds follow from the step. Printed: a digest of the weights at the end,
uncut and resumed after each step. Ours saves between generation batches alone: cut within one, it
does that one again (docs/design/archer.md).
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from tests.torch.online_rl.wanderer import wandering_model
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from agentc_backends.data.models.checkpoint import configure_libraries
from agentc_backends.trainers.online_rl.learning import ACTOR, Learning
from agentc_backends.trainers.online_rl.replay import ReplayBuffer
from agentc_backends.trainers.online_rl.settings import GroupPhase
from agentc_backends.trainers.online_rl.state import read_learner, write_learner
from agentc_backends.trainers.online_rl.trl import TrlLearner, episode_batch, episode_row
from benchmarks.corridor_players import Players

EPISODES, GROUP, LONGEST, BATCHES, STEPS = 16, 8, 6, 2, 2
LR, SEED = 1e-3, 1


def main() -> None:
    configure_libraries()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        folder = wandering_model(root)
        print("| cut after step | TRL's resume | ours |")
        print("|---|---|---|")
        whole = [theirs(folder, root / "theirs", None), ours(folder, None)]
        print(f"| not at all | {whole[0]} | {whole[1]} |", flush=True)
        for cut in range(1, BATCHES * STEPS):
            cells = [theirs(folder, root / "theirs", cut), ours(folder, cut)]
            marks = [
                f"{cell} ({'the same' if cell == uncut else 'other weights'})"
                for cell, uncut in zip(cells, whole, strict=True)
            ]
            print(f"| {cut} | {marks[0]} | {marks[1]} |", flush=True)


def theirs(folder: Path, output: Path, cut: int | None) -> str:
    """By GRPOTrainer, its checkpoints and its resume."""
    players = Players(folder)

    def rollouts(prompts: list[Any], trainer: Any) -> dict[str, Any]:
        rows = [
            episode_row(one) for one in players.play(trainer.state.global_step, EPISODES, LONGEST)
        ]
        players.policy.train()
        batch = episode_batch(rows, players.tokenizer.eos_token_id)
        return {
            "prompt_ids": batch.prompts,
            "completion_ids": batch.completions,
            "logprobs": None,
            "env_mask": batch.drawn,
            "worth": [row.worth for row in rows],
        }

    def reward(prompts: Sequence[Any], worth: list[float], **_: Any) -> list[float]:
        return worth

    trainer = GRPOTrainer(
        model=players.policy,
        reward_funcs=reward,
        args=GRPOConfig(
            output_dir=str(output if cut is None else output / f"from-{cut}"),
            per_device_train_batch_size=EPISODES // STEPS,
            steps_per_generation=STEPS, num_generations=GROUP, max_steps=BATCHES * STEPS,
            learning_rate=LR, lr_scheduler_type="constant", bf16=False, use_cpu=True,
            gradient_checkpointing=False, save_steps=1, report_to="none", disable_tqdm=True,
            logging_strategy="no", seed=SEED, dataloader_pin_memory=False,
        ),
        train_dataset=Dataset.from_dict(
            {"prompt": [*map(str, range(BATCHES * EPISODES // GROUP))]}
        ),
        processing_class=players.tokenizer,
        rollout_func=rollouts,
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=None if cut is None else str(output / f"checkpoint-{cut}"))
    return digest(players.policy)


class _Cut(TrainerCallback):  # type: ignore[misc]
    """Ends everything after a step, as a kill does."""

    def __init__(self, after: int) -> None:
        self._left = after

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self._left -= 1
        if self._left == 0:
            raise InterruptedError


def ours(folder: Path, cut: int | None) -> str:
    """By the learner of `trl.online_rl`, saved before each generation batch."""
    policy, learner = _learner(folder)
    if cut is not None:
        learner._trainer.add_callback(_Cut(cut))
    with tempfile.TemporaryDirectory() as name:
        for batch in range(BATCHES):
            state = Path(name) / str(batch)
            write_learner(state, learner)
            try:
                _learn(policy, learner, batch)
            except InterruptedError:
                # The batch was not saved as done, whether a step of it is missing or none.
                policy, learner = _learner(folder)
                read_learner(state, learner)
                _learn(policy, learner, batch)
    return digest(policy.policy)


def _learner(folder: Path) -> tuple[Players, TrlLearner]:
    players = Players(folder)
    phase = GroupPhase(
        algorithm="grpo", episodes=EPISODES, group=GROUP, lr=LR, updates=STEPS, minibatches=STEPS,
        max_grad_norm=1.0, beta=0.0, clip_low=0.2, clip_high=0.2, scale_rewards="group",
    )  # fmt: skip
    learning = Learning(
        policy=players.policy, tokenizer=players.tokenizer, sampler=players.sampler,
        decode=players.decode, seed=SEED, micro_batch=EPISODES,
    )  # fmt: skip
    return players, TrlLearner(learning, phase)


def _learn(players: Players, learner: TrlLearner, batch: int) -> None:
    buffer = ReplayBuffer(10_000, 1.0, EPISODES)
    buffer.add(players.play(batch * STEPS, EPISODES, LONGEST))
    learner.learn(ACTOR, batch, buffer)


def digest(policy: Any) -> str:
    """Of all weights."""
    found = hashlib.sha256()
    for weight in policy.state_dict().values():
        found.update(weight.detach().contiguous().numpy().tobytes())
    return found.hexdigest()[:12]


if __name__ == "__main__":
    main()
