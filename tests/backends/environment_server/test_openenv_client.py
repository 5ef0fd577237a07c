"""Whole episodes by OpenEnv's released client, unmodified, against servers of ours.

Its software stack is openenv.lock of this folder (452 MiB):
`python -m agentc.runtime.build_software tests/backends/environment_server/openenv.lock`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from running import FOLDER, Start, built
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.slow
LOCK = FOLDER / "openenv.lock"


SERVERS: Mapping[str, tuple[str, ...]] = {
    "textcraft": (),
    "webshop": (),
    "alfworld": (),
    "guessing_games": ("--game", "twenty_questions"),
}
TOKEN = "secret"


def test_its_episodes_tell_what_ours_tell(start: Start) -> None:
    # 452 MB that no target of make builds.
    how = f"python -m agentc.runtime.build_software {LOCK}"
    python = built(LOCK.read_text(), f"OpenEnv's client is not installed; {how} does it")
    servers = [start(name, *flags, token=TOKEN) for name, flags in SERVERS.items()]
    plans: list[dict[str, Any]] = []
    expected = []
    for server in servers:
        # By a header, and in the address, as clients send it that cannot set headers.
        in_address = server.url.replace("http://", f"http://anybody:{TOKEN}@")
        ways = [(server.url, {"Authorization": f"Bearer {TOKEN}"}), (in_address, None)]
        tasks = next(iter(server.client.get("/meta").json()["splits"].values()))[:6]
        for task, (url, headers) in product(tasks, ways):
            actions = ["xyzzy", *server.plan(task)]
            reset = {"task_id": task, "episode_id": f"my {task}"}
            plans.append({"url": url, "headers": headers, "reset": reset, "actions": actions})
            replies = server.play(task, actions)
            expected.append([[r["observation"], r["reward"], r["done"]] for r in replies])
    assert {rows[-1][2] for rows in expected} == {True}
    done = subprocess.run(
        [str(python), str(FOLDER / "openenv_player.py")],
        input=json.dumps(plans),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [each["told"] for each in told] == expected
    for each, plan in zip(told, plans, strict=True):
        state, reset = each["state"], plan["reset"]
        assert (state["episode_id"], state["task_id"]) == (reset["episode_id"], reset["task_id"])
        assert state["step_count"] == len(plan["actions"])
        assert "VALIDATION_ERROR" in each["refused"]
    assert [server.open_count() for server in servers] == [0] * len(servers)
