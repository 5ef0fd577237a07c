"""The adapter before servers of ours that speak as members of the family: two readings of the
same release, held against each other."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PYTHON_PATH = os.pathsep.join(
    str(Path(__file__).parents[3] / part) for part in ("compiler", "backends")
)


def launch(program: str) -> dict[str, Any]:
    argv = [
        sys.executable,
        "-m",
        f"agentc_backends.environments.{program}.job_serve",
        "--port",
        "{port}",
    ]
    return {"command": argv, "variables": {"PYTHONPATH": PYTHON_PATH}, "ready_path": "/health"}


def test_webshop(start_adapter: Callable[..., Any]) -> None:
    adapter = start_adapter(launch("webshop"), server="webshop", splits={"test": "0-3"})
    session, page = adapter.open("webshop_3")
    assert page.startswith("WebShop [SEP] Instruction: [SEP] ")
    words = page.split(" [SEP] ")[2]
    found = adapter.post("/step", id=session, action=f"search[{words}]")
    assert "Page 1 (Total results:" in found["observation"]
    assert (found["reward"], found["done"]) == (0, False)


def test_alfworld(start_adapter: Callable[..., Any]) -> None:
    adapter = start_adapter(launch("alfworld"), server="alfworld", splits={"test": "0-3"})
    session, opening = adapter.open("alfworld_2")
    _, _, legal = opening.partition("\nAVAILABLE ACTIONS: ")
    action = next(action for action in legal.split(",") if action.startswith("go to"))
    answer = adapter.post("/step", id=session, action=action)
    assert action not in answer["observation"].partition("AVAILABLE ACTIONS: ")[2].split(",")
