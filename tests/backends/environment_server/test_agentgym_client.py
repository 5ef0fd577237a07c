"""Whole episodes by AgentGym's released clients, unmodified, against servers of ours.

Needs AGENTC_AGENTGYM, a checkout of WooooDyy/AgentGym, and AGENTC_AGENTGYM_PYTHON, an interpreter
that has what its package `agentenv` imports (torch, transformers, openai, requests).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from running import FOLDER, ROOT, Running, Start

from agentc_backends.environments.sciworld.tasks import agentgym_tasks
from agentc_backends.environments.textcraft.environment import TextCraftEnvironment

TOKEN = "secret"
Reply = Mapping[str, Any]


@dataclass(frozen=True)
class Member:
    """A client's name, flags of our server, which numbers to play, what a number means to us, and
    what the client makes of our plain replies: the opening's text and a step's reward."""

    client: str
    flags: Sequence[str]
    numbers: Sequence[int]
    task_ids: Callable[[Running], Sequence[str]]
    opening: Callable[[Reply], str] = lambda reply: str(reply["observation"])
    reward: str = "reward"


def every_task(server: Running) -> Sequence[str]:
    splits = server.client.get("/meta").json()["splits"]
    return list(dict.fromkeys(task for tasks in splits.values() for task in tasks))


MEMBERS = {
    "textcraft": Member(
        "TextCraftEnvClient",
        (),
        (0, 31, 200, 543),
        lambda _: sorted(TextCraftEnvironment().catalogue.lists.known),
    ),
    "webshop": Member(
        "WebshopEnvClient", (), (0, 3, 500), lambda _: [f"webshop_{n}" for n in range(501)]
    ),
    # Its client shows the legal actions with the first text, and never again.
    "alfworld": Member("AlfWorldEnvClient", (), (0, 5, 17), every_task),
    "sciworld": Member(
        "SciworldEnvClient",
        ("--step-limit", "none"),
        (5, 3491),
        lambda _: agentgym_tasks(),
        lambda reply: str(reply["observation"]).rstrip("\n"),
        reward="score",
    ),
}


@pytest.mark.slow
def test_their_episodes_tell_what_ours_tell(start: Start, tmp_path: Path) -> None:
    checkout = os.environ.get("AGENTC_AGENTGYM")
    if not checkout:
        pytest.skip("AGENTC_AGENTGYM names no checkout of AgentGym")
    python = os.environ.get("AGENTC_AGENTGYM_PYTHON", sys.executable)
    variables = {**os.environ, "PYTHONPATH": str(Path(checkout) / "agentenv"), "NO_PROXY": "*"}
    needs = "import torch, transformers, openai, requests"
    if subprocess.run([python, "-c", needs], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"{python} cannot import what agentenv imports (torch, transformers, openai)")
    plans, expected, servers = [], [], []
    for name, member in MEMBERS.items():
        # The token goes in the address: these clients know no other place for it.
        server = start(name, *member.flags, token=TOKEN)
        servers.append(server)
        url = server.url.replace("http://", f"http://agentgym:{TOKEN}@")
        tasks = member.task_ids(server)
        for number in member.numbers:
            actions = ["xyzzy", *server.plan(tasks[number])[:40]]
            plans.append({"client": member.client, "url": url, "task": number, "actions": actions})
            first, *steps = server.play(tasks[number], actions)
            rows: list[list[Any]] = [[member.opening(first), 0, False]]
            rows += [[step["observation"], step[member.reward], step["done"]] for step in steps]
            expected.append(rows)
    assert sum(rows[-1][2] for rows in expected) >= len(expected) - 1
    (tmp_path / "plans.json").write_text(json.dumps(plans))
    done = subprocess.run(
        [python, str(FOLDER / "agentgym_player.py"), "plans.json", "told.json"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads((tmp_path / "told.json").read_text())
    for plan, got, want in zip(plans, told, expected, strict=True):
        if plan["client"] == "AlfWorldEnvClient":
            text, _, legal = got[0][0].partition("\nAVAILABLE ACTIONS: ")
            assert plan["actions"][1] in legal.split(",")
            got[0][0] = text
        assert got == want, plan
    assert [server.open_count() for server in servers] == [0] * len(servers)


@pytest.mark.slow
def test_sciworld_answers_as_was_recorded_of_the_released_server(start: Start) -> None:
    shared = Path(os.environ.get("AGENTC_SHARED", ROOT.parent / "shared"))
    recording = shared / "data" / "agent_r_fixtures" / "sciworld_session.jsonl"
    if not recording.exists():
        pytest.skip(f"no recorded exchanges at {recording}; set AGENTC_SHARED")
    server = start("sciworld", "--step-limit", "none", "--simplifications", "")
    compared = 0
    for exchange in map(json.loads, recording.read_text().splitlines()):
        path, request, expected = exchange["path"], exchange["request"], exchange["response"]
        if path not in ("/create", "/reset", "/step") or "error" in expected:
            continue
        reply = server.client.request(exchange["method"], path, json=request).json()
        # `reward` is told otherwise: see the README of `environments/server`.
        same = set(expected) - {"reward", "deleted"}
        assert {k: reply[k] for k in same} == {k: expected[k] for k in same}, exchange
        compared += 1
    assert compared >= 10


def test_webshop_speaks_of_sessions_as_its_client_does(start: Start) -> None:
    """What the client sends and reads, without the client."""
    server = start("webshop")
    session = server.client.post("/create").json()
    assert isinstance(session, int)
    opened = server.post("/reset", env_idx=session, session_id=3)
    page = server.client.get(f"/observation?env_idx={session}").json()
    assert opened == [page, None]
    actions = server.client.get(f"/available_actions?env_idx={session}").json()
    assert actions == {"has_search_bar": True, "clickables": ["search"]}
    plan = server.plan("webshop_3")
    replies = [server.post("/step", env_idx=session, action=action) for action in plan]
    assert set(replies[0]) == {"state", "reward", "done", "info"}
    assert (replies[-1]["done"], replies[-1]["info"]) == (True, None)
    # In the plain way beside it: the same numbers, other names and shapes.
    plain = server.play("webshop_3", plan)
    assert [r["observation"] for r in plain[1:]] == [r["state"] for r in replies]
    assert server.post("/close", env_idx=session) is True
    missing = server.client.post("/reset", json={"env_idx": session, "session_id": 10**6})
    assert missing.status_code == 404
    assert server.client.post("/step", json={"action": "x"}).status_code == 422


def test_alfworld_names_legal_actions_to_its_client_alone(start: Start) -> None:
    server = start("alfworld")
    session = server.client.post("/create").json()["id"]
    opened = server.post("/reset", id=session, game=2, world_type="Text")
    assert {"look", "inventory"} < set(opened["available_actions"])
    for _ in range(3):
        action = next(a for a in opened["available_actions"] if a.startswith("go to"))
        opened = server.post("/step", id=session, action=action)
        assert action not in opened["available_actions"]
    listed = server.client.get(f"/available_actions?id={session}").json()
    assert listed == opened["available_actions"]
    plain = server.play(every_task(server)[2], ["look"])
    assert all("available_actions" not in reply for reply in plain)


def test_textcraft_still_wants_a_body_for_a_new_session(start: Start) -> None:
    assert start("textcraft").client.post("/create").status_code == 422
