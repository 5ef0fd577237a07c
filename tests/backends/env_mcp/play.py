"""Plays episodes on MCP servers, in the software stack that has the SDK:

    python play.py < plans.json > told.json

`plans.json` is {settings, episodes}: each episode a task and its actions, and all are reset before
one is played. What is told are the server's identity, the first texts, and what each action came
to: [observation, reward, done], or the failure.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from agentc_backends.environments.external.launch import read_launch
from agentc_backends.environments.mcp.connection import McpUpstream
from agentc_backends.environments.mcp.environment import McpEnvironment
from agentc_backends.environments.mcp.job_serve import survey
from agentc_backends.environments.mcp.settings import McpSettings
from agentc_backends.environments.server.environment import EnvironmentFailure, EpisodeError


def played(environment: McpEnvironment, action: str) -> Any:
    try:
        return environment.step(action)[:3]
    except EnvironmentFailure as failure:
        return f"failure: {failure}"
    except EpisodeError as error:
        return f"error: {error}"


def main() -> None:
    plan = json.load(sys.stdin)
    settings = McpSettings(**plan["settings"])
    launch = None if settings.launch is None else read_launch(settings.launch)
    upstream = McpUpstream(launch, settings.url, timeout_s=settings.timeout_s)
    served = survey(upstream, settings)
    episodes = [(McpEnvironment(served), each) for each in plan["episodes"]]
    firsts = [environment.reset(each["task"])[0] for environment, each in episodes]
    told = [[played(env, action) for action in each["actions"]] for env, each in episodes]
    identity = McpEnvironment(served).identity()
    upstream.end()
    json.dump({"identity": identity, "firsts": firsts, "told": told}, sys.stdout)


main()
