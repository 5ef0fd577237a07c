"""TRL's GRPOTrainer and RLOOTrainer on episodes that were played already.

GRPO takes them by TRL's own `rollout_func`. RLOO has none in TRL 1.16, nor a mask: there what was
generated is replaced by the episodes, and log-probabilities of tokens that the policy did not say
are 0, so that TRL's sums over a completion are sums over its replies. Neighbour: `trl_learner.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from trl import GRPOTrainer, RLOOTrainer
from trl.trainer.utils import pad

from agentc_backends.trainers.online_rl.episode_rows import EpisodeBatch

Episodes = Callable[[int], EpisodeBatch]
"""The episodes of an iteration; it is told how many rows TRL wants."""


class EpisodeGroupTrainer(GRPOTrainer):  # type: ignore[misc]
    """GRPOTrainer whose rollouts are these episodes."""

    def __init__(self, episodes: Episodes, **options: Any) -> None:
        def rollouts(prompts: list[Any], trainer: Any) -> dict[str, Any]:
            batch = episodes(len(prompts))
            return {
                "prompt_ids": batch.prompts,
                "completion_ids": batch.completions,
                # TRL reads them with vLLM alone; it computes those of the model that trains.
                "logprobs": None,
                "env_mask": batch.drawn,
            }

        super().__init__(rollout_func=rollouts, **options)


class EpisodeLeaveOneOutTrainer(RLOOTrainer):  # type: ignore[misc]
    """RLOOTrainer on these episodes."""

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
        made: dict[str, Any] = super()._generate_and_score_completions(inputs)
        return {**made, "drawn": self._drawn}  # TRL shuffles and cuts it as it does the others

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
