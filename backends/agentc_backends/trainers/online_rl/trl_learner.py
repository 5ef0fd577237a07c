"""GRPO and RLOO by TRL's own trainers: in each iteration one of them is run on exactly one
generation batch, which is the iteration's episodes.

TRL saves nothing here: its resume from the middle of a generation batch plays other episodes. The
run is saved between phases, where all of a trainer's state is the policy and the moments of Adam.
Neighbours: `episode_rows.py`, `trl_trainers.py`.
"""

from __future__ import annotations

import copy
import statistics
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from datasets import Dataset
from torch import nn
from torch.optim import Adam, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, RLOOConfig

from agentc_backends.trainers.online_rl.episode_rows import (
    EpisodeBatch,
    EpisodeRow,
    episode_batch,
    episode_row,
)
from agentc_backends.trainers.online_rl.learner import ACTOR, Learning, Numbers
from agentc_backends.trainers.online_rl.replay import ReplayBuffer, key_of
from agentc_backends.trainers.online_rl.trl_trainers import (
    EpisodeGroupTrainer,
    EpisodeLeaveOneOutTrainer,
)

Algorithm: TypeAlias = Literal["grpo", "rloo"]
_NUMBERS = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "clip_ratio/region_mean": "clipped",
    "frac_reward_zero_std": "groups_alike",
}
_OF_TOKENS = {"kl": "kl", "entropy": "entropy"}
"""Of GRPO alone: RLOO's are means over all tokens of an episode, the environment's too."""
_SET = ("bos_token_id", "eos_token_id", "pad_token_id", "use_cache")
"""Of a model's config, what trainers set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPhase:
    """How the policy learns from an iteration's `episodes`, each task's `group` side by side.
    `updates` gradient steps, `minibatches` of them in one pass over the episodes. `scale_rewards`
    and `loss_type` are GRPO's, `normalise_advantages` RLOO's."""

    algorithm: Algorithm
    episodes: int
    group: int
    lr: float
    updates: int
    minibatches: int
    max_grad_norm: float
    beta: float
    clip_low: float
    clip_high: float
    scale_rewards: Literal["group", "batch", "none"] = "group"
    loss_type: Literal["grpo", "dapo"] = "grpo"
    normalise_advantages: bool = False


class TrlLearner:
    """One phase: a TRL trainer's steps on the episodes that were just played."""

    phases: Sequence[str] = (ACTOR,)

    def __init__(self, learning: Learning, phase: GroupPhase) -> None:
        self._with, self._phase = learning, phase
        self._rows: list[EpisodeRow] = []
        self._heard = _Heard()
        optimiser = Adam(learning.policy.parameters(), lr=phase.lr)
        self.optimisers: Mapping[str, Optimizer] = {ACTOR: optimiser}
        # The trainer makes the folder that it would save to.
        self._folder = tempfile.TemporaryDirectory()
        with _as_it_was(learning.policy), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that rollout_func is experimental
            self._trainer = self._trainer_of(optimiser)

    @property
    def modules(self) -> Mapping[str, nn.Module]:
        """What changes; the reference is the policy that the run starts from."""
        return {"policy": self._with.policy}

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of the phase."""
        self._rows = [episode_row(one) for one in buffer.fresh]
        self._heard.lines.clear()
        # TRL shuffles a generation batch by the common generator.
        torch.manual_seed(key_of(self._with.seed, "actor", iteration))
        with _as_it_was(self._with.policy):
            self._trainer.train()
        wanted = {**_NUMBERS, **(_OF_TOKENS if self._phase.algorithm == "grpo" else {})}
        told = {
            ours: statistics.fmean(line[name] for line in self._heard.lines)
            for name, ours in wanted.items()
            if all(line.get(name) is not None for line in self._heard.lines)
        }
        return {**told, "left_out": float(sum(row.left_out for row in self._rows))}

    def _episodes(self, asked: int) -> EpisodeBatch:
        if asked != len(self._rows):
            raise ValueError(f"TRL wants {asked} rollouts, and {len(self._rows)} were played")
        return episode_batch(self._rows, int(self._with.tokenizer.eos_token_id))

    def _worth(self, prompts: Sequence[Any], **_: Any) -> list[float]:
        """The episodes' returns. Raises ValueError where TRL has other groups than were played."""
        group = self._phase.group
        if [*map(int, prompts)] != [number // group for number in range(len(self._rows))]:
            raise ValueError("TRL's prompts are not in groups as the episodes were played")
        return [row.worth for row in self._rows]

    def _trainer_of(self, optimiser: Optimizer) -> Any:
        phase = self._phase
        step = phase.episodes // phase.minibatches
        # Micro-batches of one size: TRL takes the mean of their means.
        micro = next(n for n in range(min(self._with.micro_batch, step), 0, -1) if step % n == 0)
        told: dict[str, Any] = {
            "output_dir": self._folder.name,
            "per_device_train_batch_size": micro,
            "gradient_accumulation_steps": step // micro,
            "steps_per_generation": phase.episodes // micro,
            "num_iterations": phase.updates // phase.minibatches,
            "num_generations": phase.group,
            "max_steps": phase.updates,
            "shuffle_dataset": False,
            "max_grad_norm": phase.max_grad_norm or float("inf"),
            "temperature": self._with.decode.temperature,
            "beta": phase.beta,
            "epsilon": phase.clip_low,
            "epsilon_high": phase.clip_high,
            "disable_dropout": True,
            "gradient_checkpointing": False,
            "bf16": False,
            "use_cpu": True,
            "dataloader_pin_memory": False,
            "seed": self._with.seed,
            "save_strategy": "no",
            "logging_steps": 1,
            "report_to": "none",
            "disable_tqdm": True,
        }
        makes: Any = EpisodeLeaveOneOutTrainer
        if phase.algorithm == "grpo":
            makes = EpisodeGroupTrainer
            told |= {"loss_type": phase.loss_type, "scale_rewards": phase.scale_rewards}
            arguments = GRPOConfig(**told)
        else:
            arguments = RLOOConfig(**told, normalize_advantages=phase.normalise_advantages)
        trainer = makes(
            self._episodes,
            model=self._with.policy,
            reward_funcs=self._worth,
            args=arguments,
            # What is asked of a model is the environment's matter; here a prompt is a group's name.
            train_dataset=Dataset.from_dict(
                {"prompt": [*map(str, range(phase.episodes // phase.group))]}
            ),
            processing_class=self._with.tokenizer,
            callbacks=[self._heard],
            optimizers=(optimiser, LambdaLR(optimiser, lambda _: 1.0)),
        )
        trainer.remove_callback(PrinterCallback)
        return trainer


class _Heard(TrainerCallback):  # type: ignore[misc]
    """What a trainer logs of each step."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if logs and "loss" in logs:
            self.lines.append(logs)


@contextmanager
def _as_it_was(policy: Any) -> Iterator[None]:
    """Trainers set special tokens of a model's configs to the tokenizer's, and leave it training:
    what is published would say when the run was last cut off."""
    config = policy.config.get_text_config()
    stood = {name: getattr(config, name) for name in _SET}
    generation, training = copy.deepcopy(policy.generation_config), policy.training
    try:
        yield
    finally:
        for name, value in stood.items():
            setattr(config, name, value)
        policy.generation_config = generation
        policy.train(training)
