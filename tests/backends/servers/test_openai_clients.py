"""Clients of others, unmodified, against our servers: the `openai` package and the OpenAI Agents
SDK stream, call functions and read errors. The same plays for each server, and for vLLM; and
those with weights show an episode's functions in the tokens that a trainer makes of them.

Their environment is openai_clients.lock of this folder (59 MB):
`python -m agentc.runtime.build_software tests/backends/servers/openai_clients.lock`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.built_software import built_python
from tests.support.patience import PATIENCE_S
from tests.support.vllm_software import tiny_model, vllm_python, vllm_variables

from agentc.backend_api import OptionView, ServerBackend, Software
from agentc_backends import clients
from agentc_backends.agents.common.prompts import (
    EpisodePrompt,
    action_call,
    observation_message,
    opening_messages,
)
from agentc_backends.data.chat.tool_calls import call_text
from agentc_backends.servers.scripted.backend import BACKEND as SCRIPTED
from agentc_backends.servers.transformers.backend import BACKEND as TRANSFORMERS
from agentc_backends.servers.vllm.backend import BACKEND as VLLM
from agentc_backends.software import STRUCTURED
from serving import free_port, running, tools_template

pytestmark = pytest.mark.long
HERE = Path(__file__).parent
CLIENTS = Software(name="openai-clients", lock=(HERE / "openai_clients.lock").read_text("utf-8"))
GOAL = "Get the oak log."
RULES = [
    {"match": "<tool_response>", "reply": "I have it."},
    {"match": GOAL, "reply": "I go.\n" + call_text("get", '{"item": "oak log"}')},
    {"reply": "Hello there, crafter."},
]
REQUIRED = {"tool_choice": "required", "parallel_tool_calls": False}


@contextmanager
def leased(
    backend: ServerBackend, python: str, model: Path, folder: Path, **values: Any
) -> Iterator[str]:
    """The URL of a server that is started by the words of its lease."""
    draft = backend.lease(OptionView(table=backend.fields, values=values))
    port = free_port()
    words = {"{model}": str(model), "{served_name}": "policy", "{host}": "127.0.0.1",
             "{port}": str(port), "{ready_file}": str(folder / "ready.json")}  # fmt: skip
    command = [python, *(words.get(word, word) for word in draft.program)]
    if draft.port != "held":
        command[command.index("--port") + 1] = str(port)
    environment = vllm_variables(**draft.variables, AGENTC_TOKEN="test-token")
    url = f"http://127.0.0.1:{port}"
    with running(command, environment, folder / "server.log", url):
        yield url


@contextmanager
def served(name: str, folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """A server's URL, and how the plays ask it: a model that knows nothing has to be told."""
    model = folder / "model"
    with ExitStack() as stack:
        start = stack.enter_context
        if name == "scripted":
            model.mkdir()
            url = start(leased(SCRIPTED, sys.executable, model, folder, rules=RULES))
            yield url, {"demand": {}, "agent": {}, "strict": False}
            return
        python = built_python(STRUCTURED) if name == "transformers" else vllm_python()
        tiny_model(python, model)
        tools_template(model, context=2048)
        values: dict[str, Any] = {"max_model_len": 2048, "dtype": "float32"}
        if name == "transformers":
            url = start(leased(TRANSFORMERS, python, model, folder, structured=True, **values))
        else:
            values |= {"enforce_eager": True, "tool_parser": "hermes"}
            url = start(leased(VLLM, python, model, folder, **values))
        yield url, {"demand": REQUIRED, "agent": REQUIRED, "strict": True}


TRAINED = """
import json, sys
from pathlib import Path
from agentc_backends.data.chat.tokens import load_encoder
json.dump(load_encoder(Path(sys.argv[1])).encode_prompt(json.load(sys.stdin)), sys.stdout)
"""


async def shows_what_is_trained(url: str, model: Path, *, vllm: bool) -> None:
    """Under `reply_format: tools`, by the model's own template, which renders functions."""
    prompt = EpisodePrompt("Craft.", None, (), "tools", "Be brief.", observation_prefix="")
    messages = opening_messages(prompt, GOAL)
    messages.append({"role": "assistant", "content": "I look.\n" + action_call("inventory")})
    messages.append(observation_message("", "Inventory: nothing", prompt.answered_by))
    python = vllm_python() if vllm else built_python(STRUCTURED)
    done = subprocess.run(
        [python, "-c", TRAINED, str(model)], input=json.dumps(messages), env=vllm_variables(),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    async with clients.ChatClient(url, "test-token", "policy") as chat:
        assert await chat.tokenize(messages) == json.loads(done.stdout)
        reply = await chat.chat(messages, max_tokens=4, extra={"return_token_ids": True})
        assert reply.prompt_tokens == len(json.loads(done.stdout))


SERVERS = ["scripted", "transformers", pytest.param("vllm", marks=pytest.mark.vllm)]


@pytest.mark.parametrize("name", SERVERS)
def test_they_play(name: str, tmp_path: Path) -> None:
    clients = built_python(CLIENTS)
    with served(name, tmp_path) as (url, how):
        talk = [{"role": "user", "content": "Hello."}]
        asked = {"url": url, "key": "test-token", "model": "policy", "goal": GOAL, "text": talk,
                 "tools": [{"role": "user", "content": GOAL}], **how}  # fmt: skip
        if name != "scripted":
            asyncio.run(shows_what_is_trained(url, tmp_path / "model", vllm=name == "vllm"))
        done = subprocess.run(
            [clients, str(HERE / "openai_player.py")], input=json.dumps(asked),
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    text = seen["text"]
    assert text["whole"] == text["streamed"] == text["helped"] != ""
    assert text["scores"] == pytest.approx(text["streamed_scores"], abs=1e-6)
    assert len(text["scores"]) == text["usage"][0]["completion_tokens"]
    counts = [{k: u[k] for k in ("prompt_tokens", "completion_tokens")} for u in text["usage"]]
    assert counts[0] == counts[1]
    assert text["events"] > 2
    assert seen["completion"][0] == seen["completion"][1]
    calls = seen["tools"]["calls"]
    streamed = seen["tools"]["streamed"]
    if name == "vllm":  # a whole reply of its writes arguments anew, a stream leaves the letters
        streamed = [[called, json.dumps(json.loads(given))] for called, given in streamed]
    assert calls == streamed
    for function, arguments in calls:
        assert function == "get"
        assert json.loads(arguments)["item"] in ("oak log", "stick")
    assert len(calls) == 1
    assert seen["tools"]["reasons"][0] == "tool_calls"
    bad, missing, stranger = "BadRequestError", "NotFoundError", "AuthenticationError"
    assert seen["errors"] == [bad, bad, bad, bad, missing, missing, stranger, stranger]
    assert seen["session"] == "episode-7"
    for agent in (seen["agent"], seen["streamed_agent"]):
        assert agent["called"]
        assert agent["kinds"][:2] == ["ToolCallItem", "ToolCallOutputItem"] or (
            agent["kinds"][:3] == ["MessageOutputItem", "ToolCallItem", "ToolCallOutputItem"]
        )
        assert agent["said"]
    assert seen["agent"]["called"] == seen["streamed_agent"]["called"]
    assert seen["streamed_agent"]["deltas"] > 5
    if name == "scripted":
        assert seen["tools"]["after"] == seen["agent"]["said"] == "I have it."
