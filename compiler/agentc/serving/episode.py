"""The first turn of an episode as lines of curl: what a person types who has just started a server.

The words are the server's own: a task of its first split, and what its expert would do first, where
there is one. Neighbour: `hosting.py`, which runs the server.
"""

from __future__ import annotations

import json
import shlex
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

_PATIENCE_S = 10.0


def episode_lines(url: str, token: str) -> list[str]:
    """Lines for a shell that begin a session, start a task and act once; of a server that does not
    say what tasks it has, the one that asks it for its account."""
    try:
        told = _asked(url, token, "/meta", None)
        task = next(tasks[0] for tasks in told["splits"].values() if tasks)
        action = _first_action(url, token, told, task)
        number = _next_number(url, token)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, StopIteration):
        return [_curl(url, token, "/meta", None)]
    return list(_turn(url, token, number, task, action))


def _turn(url: str, token: str, number: int, task: str, action: str) -> Iterator[str]:
    yield _curl(url, token, "/create", {})
    yield _curl(url, token, "/reset", {"id": number, "task_id": task})
    yield _curl(url, token, "/step", {"id": number, "action": action})


def _next_number(url: str, token: str) -> int:
    """What the next session will be called: they are counted, and one of ours is closed again."""
    ours = int(_asked(url, token, "/create", {})["id"])
    _asked(url, token, "/close", {"id": ours})
    return ours + 1


def _first_action(url: str, token: str, told: Mapping[str, Any], task: str) -> str:
    if "expert" in told["capabilities"]:
        steps = _asked(url, token, "/expert", {"task_id": task})["steps"]
        if steps:
            return str(steps[0]["action"])
    return "help"


def _asked(url: str, token: str, route: str, body: Mapping[str, Any] | None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + route, data=data)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
        return json.load(answer)


def _curl(url: str, token: str, route: str, body: Mapping[str, Any] | None) -> str:
    header = f"-H 'Authorization: Bearer {token}' " if token else ""
    data = "" if body is None else " -d " + shlex.quote(json.dumps(body, ensure_ascii=False))
    return f"curl -s {header}{url}{route}{data}"
