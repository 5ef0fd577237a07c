"""`python -m agentc.run.light_snakemake ...`: Snakemake itself, started in two thirds of the time.

Its SLURM plugin, imported whatever the profile, imports pandas for a table that is made only where
one asks for it. Here pandas and NumPy are read when something first uses them. With `--slurm-ends
FILE` first, jobs are in SLURM's queue (slurm_plugin.py). `driver.py` starts this.
"""

from __future__ import annotations

import importlib
import importlib.util
import runpy
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

from agentc.run.slurm_ends import ENDS

LAZY = ("numpy", "pandas")
_READING = threading.RLock()


class LazyModule(ModuleType):
    """Stands for a package until one of its names is asked for, `__path__` of a submodule's import
    among them. (The standard library's LazyLoader reads the package at the second `import` of it,
    before Python 3.12 at least: that asks for `__spec__`.)"""

    def __getattr__(self, name: str) -> Any:
        package = self.__name__
        with _READING:
            if sys.modules.get(package) is self:
                del sys.modules[package]
            return getattr(importlib.import_module(package), name)


def import_lazily(package: str) -> None:
    """Have a package imported at its first use; nothing where it is not installed, or is there."""
    spec = importlib.util.find_spec(package) if package not in sys.modules else None
    if spec is not None:
        sys.modules[package] = module = LazyModule(package)
        module.__spec__ = spec


if __name__ == "__main__":
    for each in LAZY:
        import_lazily(each)
    if sys.argv[1:2] == [ENDS]:
        from agentc.run.slurm_plugin import import_adapted

        import_adapted(Path(sys.argv[2]))
        del sys.argv[1:3]
    if "--slurm-jobname-prefix" in sys.argv:  # of a run: its jobs are in SLURM's queue
        from agentc.run.slurm_names import import_named

        import_named()
    runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
