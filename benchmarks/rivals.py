"""Rivals of agentc: which versions, and a virtual environment for each, outside of the repository.

Neighbours: `compilers.py` times some of them, `mistakes.py` asks what they say to a wrong setting.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FOLDER_VARIABLE = "AGENTC_RIVALS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A package of PyPI at the version that the documents speak of."""

    name: str
    requirements: tuple[str, ...]

    @property
    def version(self) -> str:
        """The version of the first requirement, which is the rival itself."""
        return self.requirements[0].partition("==")[2]


DVC = Rival(name="dvc", requirements=("dvc==3.67.1",))
SNAKEMAKE = Rival(name="snakemake", requirements=("snakemake==9.27.1",))
HYDRA = Rival(name="hydra", requirements=("hydra-core==1.3.8",))
# Left to itself, pip takes a torch that the torchaudio of LLaMA-Factory cannot be loaded with.
LLAMA_FACTORY = Rival(
    name="llamafactory",
    requirements=("llamafactory==0.9.5", "torch==2.11.0", "torchaudio==2.11.0", "torchvision"),
)
AXOLOTL = Rival(name="axolotl", requirements=("axolotl==0.19.0",))
OUMI = Rival(name="oumi", requirements=("oumi==0.9",))


def rivals_folder() -> Path:
    """Where the environments lie: $AGENTC_RIVALS, else a folder for temporary files."""
    given = os.environ.get(FOLDER_VARIABLE)
    return Path(given).absolute() if given else Path(tempfile.gettempdir(), "agentc-rivals")


def program(rival: Rival, name: str) -> str:
    """Path of a rival's command. Its environment is built first where that is missing, by pip
    (which heeds PIP_CONSTRAINT, for a torch without CUDA). Raises CalledProcessError."""
    folder = rivals_folder() / f"{rival.name}-{rival.version}"
    complete = folder / "complete"
    if not complete.exists():
        print(f"installing {' '.join(rival.requirements)} to {folder}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, *rival.requirements], check=True)
        complete.touch()
    return str(folder / "bin" / name)
