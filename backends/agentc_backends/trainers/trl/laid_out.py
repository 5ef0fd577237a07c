"""What transformers' Trainer must leave alone where a model is sharded, and how that is saved and
resumed. Both trainers inherit it. Neighbours: sharding.py, shards.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from peft import PeftModel

from agentc_backends.trainers.trl.sharding import ModelLayout
from agentc_backends.trainers.trl.shards import has_shards, load_shards, load_whole, save_shards

_SCHEDULER = "scheduler.pt"
"""As transformers names it."""


class LaidOut:
    """A Trainer whose model may be sharded. Without sharding it is transformers' own."""

    _layout: ModelLayout
    args: Any
    model: Any
    optimizer: Any
    lr_scheduler: Any

    def _settle_layout(self) -> None:
        """Once the trainer is made: the model's own sharding divides it, and no wrapper."""
        if self._layout.sharded:
            # Set from the start, it would refuse to save what can be resumed.
            self.is_distributed_loading_by_transformers = True

    def _move_model_to_device(self, model: Any, device: Any) -> None:
        """A sharded model lies where it belongs."""
        if not self._layout.sharded:
            super()._move_model_to_device(model, device)  # type: ignore[misc]

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """In a checkpoint of a sharded training the weights stand among its shards."""
        if not self._layout.sharded:
            super().save_model(output_dir, _internal_call)  # type: ignore[misc]

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if not self._layout.sharded:
            super()._save_optimizer_and_scheduler(output_dir)  # type: ignore[misc]
            return
        save_shards(Path(output_dir), self.model, self._bare_optimizer())
        if self.args.should_save:
            torch.save(self.lr_scheduler.state_dict(), Path(output_dir) / _SCHEDULER)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if self._reads_whole(resume_from_checkpoint):
            super()._load_from_checkpoint(resume_from_checkpoint, model)  # type: ignore[misc]

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        """With shards, or into them, comes the model as well."""
        if checkpoint is None or self._reads_whole(checkpoint):
            super()._load_optimizer_and_scheduler(checkpoint)  # type: ignore[misc]
            return
        load = load_shards if has_shards(Path(checkpoint)) else load_whole
        load(Path(checkpoint), self.model, self._bare_optimizer())
        schedule = torch.load(Path(checkpoint) / _SCHEDULER, weights_only=True)
        self.lr_scheduler.load_state_dict(schedule)

    def _reads_whole(self, checkpoint: str) -> bool:
        """Whether transformers can resume from this: adapters are whole in any case."""
        divided = self._layout.sharded and not isinstance(self.model, PeftModel)
        return not divided and not has_shards(Path(checkpoint))

    def _bare_optimizer(self) -> Any:
        return self.optimizer.optimizer  # accelerate wraps it
