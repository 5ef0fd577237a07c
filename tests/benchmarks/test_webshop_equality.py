"""Ours and the released WebShop tell the same: a few episodes of the comparison that
`python -m benchmarks.webshop_equality` makes of hundreds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
VARIABLES = ("AGENTC_WEBSHOP", "AGENTC_WEBSHOP_DATA", "AGENTC_WEBSHOP_PYTHON")


def compared(before: str, episodes: int) -> subprocess.CompletedProcess[str]:
    """The comparison, after a line of code of its process."""
    if missing := [name for name in VARIABLES if not os.environ.get(name)]:
        pytest.skip(
            f"{', '.join(missing)} not set: a checkout of princeton-nlp/WebShop, its data, and the "
            "Python of benchmarks/webshop_upstream/upstream.lock"
        )
    path = os.pathsep.join(str(ROOT / part) for part in ("compiler", "backends", ""))
    code = f"{before}\nfrom benchmarks.webshop_equality import main\n"
    code += f"raise SystemExit(main(['--episodes', '{episodes}']))"
    return subprocess.run(
        [os.environ["AGENTC_WEBSHOP_PYTHON"], "-W", "ignore", "-c", code],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def test_ours_and_the_released_one_tell_the_same() -> None:
    done = compared("", 20)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.count("No difference in texts, clickables, rewards") == 2


def test_the_comparison_finds_a_difference() -> None:
    done = compared(
        "import agentc_backends.environments.webshop.reward as r; r._SAME_TITLE = 0.9", 20
    )
    assert done.returncode == 1
    assert "reward part `type`" in done.stdout
