"""The scripted server: the shared checks, and its rules."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from streaming import STREAMING
from tests.support.patience import NEVER_S, PATIENCE_S

from agentc_backends import clients
from agentc_backends.servers.scripted.job_serve import choose_reply, read_rules
from conformance import CHECKS, CONVERSATION, Target, started

MODULE = "agentc_backends.servers.scripted.job_serve"
RULES = [
    {"match": "Goal: (?P<goal>craft oak planks)", "turn": 0, "reply": "Action: \\g<goal>"},
    {"match": "Got 1", "reply": [f"{i:02d} is an option." for i in range(97)]},
    {"reply": "I do not know what to say here."},
]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("scripted")
    arguments = ["--rules", json.dumps(RULES), "--model", str(folder), "--max-model-len", "2048"]
    with started(sys.executable, MODULE, arguments, folder) as (url, _):
        yield Target(url, "test-token", "policy", str(folder), 2048)


@pytest.mark.parametrize("check", [*CHECKS, *STREAMING], ids=lambda check: check.__name__)
def test_conforms(target: Target, check: object) -> None:
    asyncio.run(check(target))  # type: ignore[operator]


def test_it_listens_for_this_machine_alone_unless_told_otherwise(target: Target) -> None:
    assert urlsplit(target.url).hostname == "127.0.0.1"


def test_rules_are_followed(target: Target) -> None:
    async def talk() -> tuple[str, str, str]:
        async with target.client() as chat:
            opening = await chat.chat(CONVERSATION[:2], max_tokens=64)
            later = await chat.chat(CONVERSATION, temperature=0.0, max_tokens=64)
            other = await chat.chat([{"role": "user", "content": "hm"}], max_tokens=64)
        return opening.text, later.text, other.text

    opening, later, other = asyncio.run(talk())
    assert opening == "Action: craft oak planks"
    assert later == "00 is an option."
    assert other == "I do not know what to say here."


def test_alternatives_depend_on_seed_and_conversation_only() -> None:
    rules = read_rules([{"reply": [str(i) for i in range(1000)]}])

    def draw(text: str, seed: int) -> str:
        messages = [{"role": "user", "content": text}]
        return choose_reply(rules, messages, temperature=1.0, seed=seed, index=0)

    assert draw("a", 1) == draw("a", 1)
    assert len({draw("a", seed) for seed in range(20)} | {draw("b", 1)}) > 15


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ({"reply": 3}, "reply must be"),
        ({"reply": "x", "match": "("}, r"rules\[0\]"),
        ({"reply": "\\2", "match": "(a)"}, "refers to group 2"),
        ({"reply": "x", "when": 1}, "unknown keys: when"),
        ({"reply": "x", "turn": "first"}, "turn must be"),
    ],
)
def test_bad_rules_are_refused(rule: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_rules([rule])


def test_sigterm_ends_it_amid_a_reply(tmp_path: Path) -> None:
    arguments = ["--rules", json.dumps(RULES), "--delay", str(NEVER_S)]
    with started(sys.executable, MODULE, arguments, tmp_path) as (url, process):
        target = Target(url, "test-token", "policy", "scripted", 2048)

        async def ask_and_stop() -> None:
            async with target.client() as chat:
                reply = asyncio.create_task(chat.chat(CONVERSATION))
                await asyncio.sleep(0.3)
                process.send_signal(signal.SIGTERM)
                with pytest.raises(clients.InfrastructureError):
                    await reply

        asyncio.run(ask_and_stop())
        assert process.wait(PATIENCE_S) == 0


def test_an_open_address_needs_a_token(tmp_path: Path) -> None:
    import os
    import subprocess

    from conformance import ROOT

    paths = os.pathsep.join(str(ROOT / name) for name in ("compiler", "backends"))
    variables = {**os.environ, "PYTHONPATH": paths, "AGENTC_TOKEN": ""}
    done = subprocess.run(
        [sys.executable, "-m", MODULE, "--host", "0.0.0.0"],
        env=variables, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "AGENTC_TOKEN" in done.stderr
