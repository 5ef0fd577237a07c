"""Data files of agentc (the Snakefile, templates, specs), and how an optional part is installed.

Data files of a checkout come first: an editable install also leaves copies in site-packages,
which become stale. Optional parts are installed from the checkout, too: agentc is on no package
index, where an owner of its distribution's name would run code at everybody who types it.
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


DISTRIBUTION = "agent-experiment-compiler"
_ELSEWHERE = "/path/to/checkout"


def install_command(extra: str = "") -> str:
    """What a person types to get agentc, with an optional part (`slurm`, `hub`)."""
    checkout = Path(__file__).resolve().parents[2]
    source = checkout if (checkout / "pyproject.toml").is_file() else _ELSEWHERE
    return f'pip install "{source}{extra and f"[{extra}]"}"'
