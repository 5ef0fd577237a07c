"""How an optional part of agentc is installed: from its checkout.

agentc is on no package index: an owner of its distribution's name there would run code at
everybody who types it. `agentc` itself is another product there. Messages take the line from here.
"""

from __future__ import annotations

from pathlib import Path

DISTRIBUTION = "agent-experiment-compiler"
_ELSEWHERE = "/path/to/checkout"


def install_command(extra: str) -> str:
    """What a person types to get an optional part (`run`, `slurm`)."""
    checkout = Path(__file__).resolve().parents[2]
    source = checkout if (checkout / "pyproject.toml").is_file() else _ELSEWHERE
    return f'pip install "{source}[{extra}]"'
