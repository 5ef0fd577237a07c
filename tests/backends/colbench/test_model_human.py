"""A model as the human: a server of ours that answers by rules, asked as the environment asks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.backends.colbench.conftest import BULK_TASK, Opened, code_task
from tests.backends.conftest import Started

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc_backends.environments.colbench.humans import ModelHuman
from agentc_backends.environments.colbench.settings import PROMPT, filled, lacking_places
from agentc_backends.environments.server.environment import EnvironmentFailure
from agentc_backends.environments.server.model_services import ModelService

CODE = "total = quantity * 7\n    if quantity > 12:"
RULES = [
    {"match": "held code of the function", "reply": "It is seven each."},
    {"match": r"Programmer: Tell me the code\.\n\nYour next", "reply": f"Here: {CODE}"},
    {
        "match": r"(?s)large orders.*quantity \* 7.*Programmer: Hello\nYou: Hello\.\n"
        r"Programmer: A discount\?\n\nYour next reply",
        "reply": "Yes, of three.",
    },
    {"match": r"Programmer: Hello\n\nYour next", "reply": "  Hello. "},
    {"match": r"Programmer: Guess \d+\n", "reply": ["heads", "tails"]},
]
SPEC = """
agentc: 1
name: asked
environments:
  easy: {backend: colbench_backend, invented_tasks: 20}
  code: {backend: colbench_backend, invented_tasks: 20, human: model, human_prompt: words.txt,
         simulator: {server: human, model: nobody}}
servers: {human: {backend: scripted, max_model_len: 4096, rules: [{reply: No.}]}}
models:
  nobody: {backend: scratch, chat_format: chatml, corpus: easily, context: 4096, hidden_size: 16,
           layers: 1, heads: 1, vocab_size: 300}
stages:
  easily: {kind: expert, environment: easy, split: train}
  asked: {kind: expert, environment: code, split: train}
"""

Asked = Callable[..., ModelHuman]


@pytest.fixture
def server(share: Any) -> Started:
    command = ["-m", "agentc_backends.servers.scripted.job_serve", "--port", "0"]
    command += ["--ready-file", "READY", "--rules", json.dumps(RULES), "--served-name", "human"]
    started: Started = share("human", command, "a token", model="human", log="human.log")
    return started


@pytest.fixture
def asked(server: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The human that an environment asks that AGENTC_LEASES tells of this server."""
    file = tmp_path / "leases.json"
    file.write_text(json.dumps({"simulator": server.lease}))
    monkeypatch.setenv("AGENTC_LEASES", str(file))

    def human(temperature: float = 0.0, **others: Any) -> ModelHuman:
        return ModelHuman(ModelService(), temperature=temperature, max_tokens=64, **others)

    return human


def test_it_is_told_the_function_and_what_was_said(opened: Opened, asked: Asked) -> None:
    world = opened(BULK_TASK, human=asked())
    world.reset(BULK_TASK.id)
    assert world.step("Hello")[0] == "Hello."
    assert world.step("A discount?")[0] == "Yes, of three."


def test_a_refused_reply_is_asked_for_once_more(opened: Opened, asked: Asked) -> None:
    world = opened(BULK_TASK, human=asked(), guard="refuse")
    world.reset(BULK_TASK.id)
    assert world.step("Tell me the code.")[0] == "It is seven each."
    assert world.step("Hello")[0] == "Hello."
    assert world.snapshot()["counts"] == {"unknown": 0, "cut": 0, "code_like": 1}
    counted = opened(BULK_TASK, human=asked())
    counted.reset(BULK_TASK.id)
    assert counted.step("Tell me the code.")[0] == f"Here: {CODE}"
    assert counted.snapshot()["counts"]["code_like"] == 1


def test_what_it_says_follows_from_what_was_said(asked: Asked) -> None:
    human = asked(temperature=1.0)
    said = [human.reply(BULK_TASK, (), f"Guess {number}") for number in range(16)]
    assert set(said) == {"heads", "tails"}
    assert said == [asked(1.0).reply(BULK_TASK, (), f"Guess {number}") for number in range(16)]


def test_a_human_who_is_gone_voids_the_episode(
    opened: Opened, asked: Asked, server: Started
) -> None:
    world = opened(BULK_TASK, human=asked())
    world.reset(BULK_TASK.id)
    world.step("Hello")
    before = world.snapshot()
    server.process.kill()
    server.process.wait()
    with pytest.raises(EnvironmentFailure):
        world.step("Hello")
    assert world.snapshot() == before


def test_an_environment_that_nobody_gave_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTC_LEASES", raising=False)
    human = ModelHuman(ModelService(), temperature=0.0, max_tokens=9)
    with pytest.raises(EnvironmentFailure, match="no simulator"):
        human.reply(BULK_TASK, (), "Hello")


def test_places_of_a_prompt() -> None:
    assert lacking_places(PROMPT) == []
    assert lacking_places("{description} {dialogue}") == ["reference"]
    task = code_task("About {reference} and {x}.", "def f(): return '{dialogue}'", ["f()"])
    text = filled("{description}|{reference}|{dialogue}|{other}", task, "said")
    assert text == "About {reference} and {x}.|def f(): return '{dialogue}'|said|{other}"


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (None, "words.txt cannot be read"),
        (b"\xff", "words.txt is no text in UTF-8"),
        (b"{description} {reference}", "words.txt has no place {dialogue}"),
        (b"{description} {reference} {dialogue}", ""),
    ],
)
def test_a_prompt_of_the_spec_is_looked_at_when_it_is_compiled(
    tmp_path: Path, content: bytes | None, wrong: str
) -> None:
    if content is not None:
        (tmp_path / "words.txt").write_bytes(content)
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC)
    told = [each.message for each in compile_spec(spec, {}, load_backends()).diagnostics]
    assert [each.partition(": ")[2] for each in told] == ([wrong] if wrong else [])
