"""Plays episodes with AgentGym's own clients, from its checkout on PYTHONPATH:

    python agentgym_player.py plans.json told.json

`plans.json` lists {client, url, task, actions}; what is told are [text, reward, done] of the
opening (as the client observes it) and of each step. The clients print, so files are written.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from agentenv import envs


def episode(plan: dict[str, Any]) -> list[list[Any]]:
    client = getattr(envs, plan["client"])(plan["url"], data_len=1)
    client.reset(plan["task"])
    rows = [[client.observe(), 0, False]]
    for action in plan["actions"]:
        output = client.step(f"Thought:\nI continue.\n\nAction:\n{action}")
        rows.append([output.state, output.reward, output.done])
    client.close()
    return rows


plans, told = map(Path, sys.argv[1:])
told.write_text(json.dumps([episode(plan) for plan in json.loads(plans.read_text())]))
