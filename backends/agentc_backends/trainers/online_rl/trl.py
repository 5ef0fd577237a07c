"""GRPO and RLOO by TRL's own trainers, which take an iteration's episodes as one generation batch.

An episode becomes one text with a mask; a token is trained only where the policy drew it, after the
very tokens that it was shown. TRL saves nothing here, since its resume from the middle of a
generation batch would play other episodes. The run is saved between phases, when the whole state of
a trainer is the policy and the moments of Adam.
"""

from __future__ import annotations

import copy
import statistics
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor, nn
from torch.optim import Adam, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer
from trl.trainer.utils import pad

from agentc.program.settings import settings_from
from agentc_backends.trainers.online_rl.learning import ACTOR, Learning, Numbers
from agentc_backends.trainers.online_rl.replay import Episode, ReplayBuffer, key_of
from agentc_backends.trainers.online_rl.settings import GroupPhase


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """The tokens of an episode, whether the policy drew each, and the episode's return. `left_out`
    counts the replies that later prompts contain in other tokens than were drawn (a text has
    several tokenisations): they are not trained."""

    tokens: tuple[int, ...]
    drawn: tuple[bool, ...]
    left_out: int
    worth: float


@dataclass(frozen=True, slots=True)
class EpisodeBatch:
    """Rows that are split at one place for all, before which no token was drawn: prompts of equal
    length need no padding on their left, which would shift the positions of what follows."""

    prompts: list[list[int]]
    completions: list[list[int]]
    drawn: list[list[int]]


def episode_row(played: Episode) -> EpisodeRow:
    """The last prompt of an episode and its reply; empty for an episode without turns."""
    if not played.turns:
        return EpisodeRow((), (), 0, played.total)
    last = played.turns[-1]
    tokens = (*last.state.ids, *last.reply.ids)
    drawn, left_out = [False] * len(tokens), 0
    for turn in played.turns:
        start, end = turn.state.length, turn.state.length + len(turn.reply.ids)
        if tokens[:start] == turn.state.ids and tokens[start:end] == turn.reply.ids:
            drawn[start:end] = [True] * (end - start)
        else:
            left_out += 1
    return EpisodeRow(tokens, tuple(drawn), left_out, played.total)


def episode_batch(rows: Sequence[EpisodeRow], filler: int) -> EpisodeBatch:
    """All rows, in their order. A row without drawn tokens becomes `filler` tokens that are not
    trained: its return still counts in its group."""
    place = min((row.drawn.index(True) for row in rows if any(row.drawn)), default=1)
    untrained = (filler,) * (place + 1), (False,) * (place + 1)
    texts = [(row.tokens, row.drawn) if any(row.drawn) else untrained for row in rows]
    return EpisodeBatch(
        prompts=[[*tokens[:place]] for tokens, _ in texts],
        completions=[[*tokens[place:]] for tokens, _ in texts],
        drawn=[[*map(int, drawn[place:])] for _, drawn in texts],
    )


Episodes = Callable[[int], EpisodeBatch]
"""(the number of rows that TRL requests) -> the episodes of the iteration."""


class EpisodeGroupTrainer(GRPOTrainer):  # type: ignore[misc]
    """GRPOTrainer whose rollouts, by TRL's own `rollout_func`, are these episodes."""

    def __init__(self, episodes: Episodes, **options: Any) -> None:
        def rollouts(prompts: list[Any], trainer: Any) -> dict[str, Any]:
            batch = episodes(len(prompts))
            return {
                "prompt_ids": batch.prompts,
                "completion_ids": batch.completions,
                # TRL reads them with vLLM only; it computes those of the model in training.
                "logprobs": None,
                "env_mask": batch.drawn,
            }

        super().__init__(rollout_func=rollouts, **options)


class EpisodeLeaveOneOutTrainer(RLOOTrainer):  # type: ignore[misc]
    """RLOOTrainer on these episodes. In TRL 1.16 it has no `rollout_func` and no mask: here the
    episodes replace what was generated, and log-probabilities of tokens that the policy did not
    draw are set to 0, so that TRL's sums over a completion are sums over its replies."""

    def __init__(self, episodes: Episodes, **options: Any) -> None:
        self._episodes = episodes
        self._drawn = torch.zeros(0)
        super().__init__(**options)

    def _generate(self, prompts: list[Any]) -> tuple[list[list[int]], list[list[int]], list[str]]:
        batch = self._episodes(len(prompts))
        drawn = [torch.tensor(row) for row in batch.drawn]
        self._drawn = pad(drawn, padding_value=0, padding_side="right")
        return batch.prompts, batch.completions, [""] * len(prompts)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        batch: dict[str, Any] = super()._generate_and_score_completions(inputs)
        return {**batch, "drawn": self._drawn}  # shuffled and split by TRL like the other columns

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        self._drawn = inputs["drawn"]
        return super()._compute_loss(model, inputs)

    def _get_per_token_logps_and_entropies(
        self, *arguments: Any, **more: Any
    ) -> tuple[Tensor, Any, Any]:
        log_probs, entropies, auxiliary = super()._get_per_token_logps_and_entropies(
            *arguments, **more
        )
        return log_probs * self._drawn, entropies, auxiliary


_NUMBERS = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "clip_ratio/region_mean": "clipped",
    "frac_reward_zero_std": "groups_alike",
}
"""TRL's metrics, and their names in the curve."""
_TOKEN_METRICS = {"kl": "kl", "entropy": "entropy"}
"""GRPO only: RLOO's are means over all tokens of an episode, the environment's too."""
_CHANGED = ("bos_token_id", "eos_token_id", "pad_token_id", "use_cache")
"""The settings of a model's config that trainers change."""


class TrlLearner:
    """One phase: a TRL trainer's steps on the episodes of the iteration."""

    phases: Sequence[str] = (ACTOR,)

    def __init__(self, learning: Learning, phase: GroupPhase) -> None:
        self._with, self._phase = learning, phase
        self._rows: list[EpisodeRow] = []
        self._log = _LogCollector()
        optimiser = Adam(learning.policy.parameters(), lr=phase.lr)
        self.optimisers: Mapping[str, Optimizer] = {ACTOR: optimiser}
        # The trainer creates the folder that it would save to.
        self._folder = tempfile.TemporaryDirectory()
        with _settings_restored(learning.policy), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rollout_func is experimental
            self._trainer = self._trainer_of(optimiser)

    @classmethod
    def of(cls, learning: Learning, settings: Mapping[str, Any]) -> TrlLearner:
        """The learner of a plan's settings."""
        return cls(learning, settings_from(GroupPhase, settings))

    @property
    def modules(self) -> Mapping[str, nn.Module]:
        """The network that is trained; the reference is the policy at the run's start."""
        return {"policy": self._with.policy}

    def learn(self, phase: str, iteration: int, buffer: ReplayBuffer) -> Numbers:
        """All gradient steps of the phase."""
        self._rows = [episode_row(one) for one in buffer.fresh]
        self._log.lines.clear()
        # TRL shuffles a generation batch by torch's default generator.
        torch.manual_seed(key_of(self._with.seed, "actor", iteration))
        with _settings_restored(self._with.policy):
            self._trainer.train()
        wanted = {**_NUMBERS, **(_TOKEN_METRICS if self._phase.algorithm == "grpo" else {})}
        numbers = {
            ours: statistics.fmean(line[name] for line in self._log.lines)
            for name, ours in wanted.items()
            if all(line.get(name) is not None for line in self._log.lines)
        }
        return {**numbers, "left_out": float(sum(row.left_out for row in self._rows))}

    def _episodes(self, number: int) -> EpisodeBatch:
        if number != len(self._rows):
            raise ValueError(f"TRL wants {number} rollouts, and {len(self._rows)} were played")
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
        # Micro-batches of equal size: TRL takes the mean of their means.
        micro = next(n for n in range(min(self._with.micro_batch, step), 0, -1) if step % n == 0)
        options: dict[str, Any] = {
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
        trainer_class: Any = EpisodeLeaveOneOutTrainer
        if phase.algorithm == "grpo":
            trainer_class = EpisodeGroupTrainer
            options |= {"loss_type": phase.loss_type, "scale_rewards": phase.scale_rewards}
            arguments = GRPOConfig(**options)
        else:
            arguments = RLOOConfig(**options, normalize_advantages=phase.normalise_advantages)
        trainer = trainer_class(
            self._episodes,
            model=self._with.policy,
            reward_funcs=self._worth,
            args=arguments,
            # The environment has the real prompts; here a prompt is a group's name.
            train_dataset=Dataset.from_dict(
                {"prompt": [*map(str, range(phase.episodes // phase.group))]}
            ),
            processing_class=self._with.tokenizer,
            callbacks=[self._log],
            optimizers=(optimiser, LambdaLR(optimiser, lambda _: 1.0)),
        )
        trainer.remove_callback(PrinterCallback)
        return trainer


class _LogCollector(TrainerCallback):  # type: ignore[misc]
    """The lines that a trainer logs, one a step."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        if logs and "loss" in logs:
            self.lines.append(logs)


@contextmanager
def _settings_restored(policy: Any) -> Iterator[None]:
    """Undo what trainers change: they set special tokens in a model's configs to the tokenizer's,
    and leave it in training mode. The artifact would depend on where the run was interrupted."""
    config = policy.config.get_text_config()
    before = {name: getattr(config, name) for name in _CHANGED}
    generation, training = copy.deepcopy(policy.generation_config), policy.training
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)
        policy.generation_config = generation
        policy.train(training)
