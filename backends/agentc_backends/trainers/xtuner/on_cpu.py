"""Runs a module of XTuner or DeepSpeed on a machine without a GPU: `python -m ... MODULE ARGS`.

XTuner 0.2 calls torch.cpu.is_bf16_supported, and mmengine sets a CUDA device before it joins a
process group; neither works there. Nothing else is changed, and with a GPU this module is not used.
"""

from __future__ import annotations

import runpy
import sys
from typing import Any

from agentc_backends.trainers.common.processes import end_worker


def main() -> None:
    import torch

    if not torch.cuda.is_available():
        patch_torch(torch)
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    end_worker(0)


def patch_torch(torch: Any) -> None:
    """Add the two functions that torch lacks without a GPU."""
    if not hasattr(torch.cpu, "is_bf16_supported"):
        torch.cpu.is_bf16_supported = lambda: True
    torch.cuda.set_device = lambda device: None


if __name__ == "__main__":
    main()
