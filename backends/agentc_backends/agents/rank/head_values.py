"""Values of candidates by a critic with a head: forward passes in the job's own process.

A row is what training's rows are: the prompt, the reply, its end. The prompt goes through the model
once for all candidates. Neighbours: `job_value_head.py`, `data/models/value_head.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.data.models.value_head import pooled, read_head

if TYPE_CHECKING:
    import torch


class HeadScorer:
    """A critic's model and head in memory, on `device`."""

    def __init__(self, folder: Path, pooling: str, device: torch.device) -> None:
        self._model = load_model(folder).to(device).eval()
        self._head = read_head(folder).to(device)
        self._device = device
        self._pooling = pooling
        self.encoder = load_encoder(folder)
        longest = getattr(self._model.config, "max_position_embeddings", None)
        self.window: int | None = longest
        """So many tokens a row may have; None where the model does not say."""

    def values(self, prompt: Sequence[int], replies: Sequence[Sequence[int]]) -> list[float]:
        """The value of each reply behind the prompt, all of them token ids."""
        import torch

        count, longest = len(replies), max(map(len, replies))
        pad = self.encoder.pad
        ids = torch.tensor([[*each, *[pad] * (longest - len(each))] for each in replies])
        real = torch.tensor([[1] * len(each) + [0] * (longest - len(each)) for each in replies])
        ids, real = ids.to(self._device), real.to(self._device)
        mask = torch.cat([real.new_ones(count, len(prompt)), real], dim=1)
        with torch.inference_mode():
            before = self._states(torch.tensor([list(prompt)], device=self._device))
            cache = before.past_key_values
            cache.batch_repeat_interleave(count)
            after = self._states(ids, attention_mask=mask, past_key_values=cache)
            told = before.hidden_states[-1].expand(count, -1, -1)
            states = torch.cat([told, after.hidden_states[-1]], dim=1)
            found: list[float] = self._head(pooled(states, mask, self._pooling))[:, 0].tolist()
        return found

    def _states(self, ids: Any, **given: Any) -> Any:
        return self._model(
            input_ids=ids, use_cache=True, output_hidden_states=True, logits_to_keep=1, **given
        )
