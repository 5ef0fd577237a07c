"""Mixed precision without a GPU, for mmengine: its AmpOptimWrapper refuses to work there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from mmengine.optim import OptimWrapper


class CpuAmpOptimWrapper(OptimWrapper):  # type: ignore[misc]
    """OptimWrapper whose forward passes run in bfloat16 where autocast says so."""

    @contextmanager
    def optim_context(self, model: Any) -> Iterator[None]:
        with super().optim_context(model), torch.autocast("cpu", dtype=torch.bfloat16):
            yield
