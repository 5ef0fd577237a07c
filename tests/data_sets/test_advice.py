"""A spec that names data which is not there names the command that fetches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.cli import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("spec", "data_set"),
    [
        ("eto/webshop", "webshop-full"),
        ("agent_r/webshop", "webshop-1000"),
        ("sweet_rl/backend", "colbench-backend"),
        ("eto/alfworld", "alfworld"),
    ],
)
def test_the_command_fills_the_folder_of_the_spec(
    spec: str, data_set: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["check", str(ROOT / f"specs/{spec}.yaml"), "-p", "data=published", "-p", "files=none"]
    assert main(words) == 1
    advice = f"in the folder of the spec: `agentc data fetch {data_set} --to none/{data_set}`"
    assert advice in capsys.readouterr().err
