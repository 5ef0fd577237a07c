"""Data files that ship with agentc: the Snakefile, templates, specs.

A checkout is looked at first: an editable install also leaves copies in site-packages, and those
go stale.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_directory() -> Path:
    """The folder that holds `Snakefile`, `templates/` and `specs/`.

    Raises FileNotFoundError when the installation lacks them.
    """
    checkout = _PACKAGE.parent.parent
    for folder in (checkout, _PACKAGE / "_data"):
        if (folder / "Snakefile").is_file() and (folder / "templates").is_dir():
            return folder
    raise FileNotFoundError("this installation of agentc lacks its data files (Snakefile, ...)")


def snakefile() -> Path:
    """The static Snakefile that runs any compiled plan."""
    return data_directory() / "Snakefile"


def templates() -> Path:
    """The folder of the templates that ship with agentc."""
    return data_directory() / "templates"


def profile(name: str) -> Path:
    """The folder of a Snakemake profile: `local` or `slurm`."""
    return templates() / "profiles" / name
