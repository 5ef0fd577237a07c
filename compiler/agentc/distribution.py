"""The name that package indexes know agentc by: `agentc` itself is another product there.

The command and the packages keep their name; messages take the line that installs it from here.
"""

from __future__ import annotations

DISTRIBUTION = "agent-experiment-compiler"


def install_command(extra: str) -> str:
    """What a person types to get an optional part (`run`, `slurm`)."""
    return f'pip install "{DISTRIBUTION}[{extra}]"'
