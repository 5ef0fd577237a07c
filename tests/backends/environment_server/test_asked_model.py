"""A model that an environment asks: found by its role, asked from many threads, with its key."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.backends.colbench.conftest import code_task

from agentc_backends.environments.colbench.humans import ModelHuman
from agentc_backends.environments.server.environment import EnvironmentFailure
from agentc_backends.environments.server.model_services import LEASES_VARIABLE, ModelService


class Endpoint(ThreadingHTTPServer):
    """Says what it was asked, and keeps keys and the most requests at once."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.keys: set[str | None] = set()
        self.at_once, self.most = 0, 0
        self.together = threading.Barrier(2)
        self.lock = threading.Lock()
        self.pairs = False
        self.says: tuple[int, str] | None = None


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.keys.add(self.headers["Authorization"])
            self.server.at_once += 1
            self.server.most = max(self.server.most, self.server.at_once)
        if self.server.pairs:
            self.server.together.wait()  # for ever, if requests came one by one
        text = f"{body['messages'][-1]['content']} {body['temperature']} {body['max_tokens']}"
        answer = {
            "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        with self.server.lock:
            self.server.at_once -= 1
        status = 200
        if self.server.says is not None:
            status, echo = self.server.says
            error = {"error": {"message": f"{echo} {text}", "code": text, "param": text}}
            answer = {"error": f"{echo} {text}"} if echo == "plain" else error
            if echo == "silence":
                status = 200
                choice = {"message": {"content": " \n"}, "finish_reason": "length"}
                answer = {"choices": [choice], "usage": {"prompt_tokens": 1,
                          "completion_tokens": 7, "total_tokens": 8}}  # fmt: skip
        raw = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *words: object) -> None:
        del words


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, **lease: Any) -> ModelService:
    file = folder / "leases.json"
    file.write_text(json.dumps({"simulator": lease}))
    monkeypatch.setenv(LEASES_VARIABLE, str(file))
    return ModelService("simulator")


def hello(model: ModelService, number: int = 0) -> str:
    return model.chat([{"role": "user", "content": f"hello {number}"}], max_tokens=7).text


def test_threads_ask_at_once_with_the_token_of_the_lease(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://127.0.0.1:{endpoint.server_address[1]}"
    model = told(tmp_path, monkeypatch, url=url, token="ours", model="m", log="/log")
    endpoint.pairs = True
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: hello(model, number), range(8)))
    assert found == [f"hello {number} 0.0 7" for number in range(8)]
    assert endpoint.keys == {"Bearer ours"}


def test_an_endpoint_of_others_gets_the_key_of_its_variable_within_its_limits(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTC_REMOTE_TOKEN", "of the policy")
    monkeypatch.setenv("AGENTC_REMOTE_TOKEN_SIMULATOR", "of-the-human")
    model = told(
        tmp_path, monkeypatch, token="", model="m", client={"concurrency": 1},
        url=f"http://127.0.0.1:{endpoint.server_address[1]}/v1",
        secrets={"AGENTC_REMOTE_TOKEN": "AGENTC_REMOTE_TOKEN_SIMULATOR"},
    )  # fmt: skip
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: hello(model, number), range(8)))
    assert (endpoint.keys, endpoint.most) == ({"Bearer of-the-human"}, 1)


def test_what_does_not_answer_voids_the_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = told(tmp_path, monkeypatch, url="http://127.0.0.1:9", token="x", model="m", log="/log")
    with pytest.raises(EnvironmentFailure, match="the model that the environment calls"):
        hello(gone)
    monkeypatch.delenv(LEASES_VARIABLE)
    with pytest.raises(EnvironmentFailure, match="nobody started one"):
        hello(ModelService())


@pytest.mark.parametrize(
    ("status", "echo"), [(400, "refused:"), (400, "plain"), (501, "failed on"), (200, "odd:")]
)
def test_no_word_of_a_server_that_repeats_what_it_was_asked_is_in_the_failure(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, echo: str
) -> None:
    """Who asks may have told it what no agent is to know."""
    url = f"http://127.0.0.1:{endpoint.server_address[1]}"
    model = told(tmp_path, monkeypatch, url=url, token="ours", model="m", log="/log")
    endpoint.says = (status, echo)
    with pytest.raises(EnvironmentFailure) as failure:
        hello(model, 987654)
    shown = "".join(traceback.format_exception(failure.value))
    assert "the model that the environment calls" in shown
    assert "hello 987654" not in shown
    assert echo not in shown
    assert failure.value.__context__ is None


def test_a_model_that_says_nothing_voids_the_episode(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://127.0.0.1:{endpoint.server_address[1]}"
    model = told(tmp_path, monkeypatch, url=url, token="ours", model="m", log="/log")
    task = code_task("Write f.", "def f(): return 7", ["f()"])
    human = ModelHuman(model, temperature=0.0, max_tokens=7)
    assert "Hello" in human.reply(task, (), "Hello")
    endpoint.says = (200, "silence")
    with pytest.raises(EnvironmentFailure, match="says nothing") as failure:
        human.reply(task, (), "Hello")
    assert "limit of tokens" in str(failure.value)
