"""Plays episodes with OpenEnv's own client, in its own software stack:

    python openenv_player.py < plans.json > told.json

`plans.json` lists {url, headers, reset, actions}; what is told are [observation, reward, done] of
each reply, the state after the episode, and what a message that makes no sense raises.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from openenv.core.generic_client import GenericEnvClient


async def episode(plan: dict[str, Any]) -> dict[str, Any]:
    async with GenericEnvClient(base_url=plan["url"], headers=plan["headers"]) as client:
        try:
            await client.step({"no action": 1})
            refused = ""
        except RuntimeError as error:
            refused = str(error)
        rows = [await client.reset(**plan["reset"])]
        rows += [await client.step({"action": action}) for action in plan["actions"]]
        state = await client.state()
    told = [[row.observation["text"], row.reward, row.done] for row in rows]
    return {"told": told, "state": state, "refused": refused}


async def main() -> None:
    json.dump(await asyncio.gather(*map(episode, json.load(sys.stdin))), sys.stdout)


asyncio.run(main())
