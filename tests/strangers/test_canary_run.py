"""A real run with a canary as the key of a remote endpoint: it reaches the endpoint, and no file,
log, plan, report, record or process list."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from test_canary import assert_nowhere, command_lines, forms

ECHOED = "(echoed)"
CANARY = "canary-4b1d/77+e2-and-some-length"
SPEC = """\
agentc: 1
name: canary
environments: {{textcraft: {{backend: textcraft, max_depth: 1}}}}
servers:
  teacher:
    backend: openai
    url: http://127.0.0.1:{port}/v1
    model: teacher
    api_key: {{secret: TEACHER_KEY}}
prompts: {{plain: {{instruction: Craft the goal., reply_format: react_inline}}}}
models:
  base:
    backend: scratch
    hidden_size: 32
    layers: 1
    heads: 2
    vocab_size: 400
    context: 512
    chat_format: chatml
    corpus: [expert]
stages:
  expert: {{kind: expert, split: train, limit: 4}}
  tested:
    kind: evaluate
    model: base
    split: test
    limit: 2
    max_turns: 2
    decode: {{max_tokens: 16}}
"""


class Endpoint(BaseHTTPRequestHandler):
    """Answers like a hosted API, and keeps the keys that it was sent."""

    keys: ClassVar[list[str]] = []
    echo: ClassVar[bool] = False

    def do_GET(self) -> None:
        self._answer({"data": [{"id": "teacher"}]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        coded = base64.b64encode(key.encode()).decode()
        text = coded if self.echo else "Thought: look. Action: inventory"
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1}
        self._answer({"choices": [{"index": 0, **choice}], "usage": usage, "model": "teacher"})

    def _answer(self, value: object) -> None:
        self.keys.append(self.headers.get("Authorization", ""))
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    Endpoint.keys.clear()
    Endpoint.echo = False
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()


@pytest.mark.slow
def test_a_real_run(port: int, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC.format(port=port))
    store = tmp_path / "store"
    agentc = str(Path(sys.executable).with_name("agentc"))
    variables = {**os.environ, "TEACHER_KEY": CANARY, "OMP_NUM_THREADS": "1"}
    printed = ""
    with command_lines() as seen:
        for words in (
            ["check", str(spec)],
            ["plan", str(spec), "--store", str(store)],
            ["bundle", "--bare", str(spec), "-o", str(tmp_path / "compiled")],
            ["plan", "--cost", str(spec), "--store", str(store)],
            ["graph", str(spec), "--store", str(store)],
            ["bundle", str(spec), "-o", str(tmp_path / "bundle")],
            ["run", str(spec), "--store", str(store), "--plain", ECHOED],
            ["run", str(spec), "--store", str(store), "--plain"],
            ["report", str(spec), "--store", str(store)],
            ["status", "canary", "--store", str(store)],
        ):
            # An endpoint that sends the key back fails its job; the next run goes on from there.
            Endpoint.echo = ECHOED in words
            done = subprocess.run(
                [agentc, *(word for word in words if word != ECHOED)],
                capture_output=True, text=True, env=variables, check=False,
            )  # fmt: skip
            printed += done.stdout + done.stderr
            assert done.returncode == (3 if Endpoint.echo else 0), printed[-3000:]
            if Endpoint.echo:  # what is staged now goes later
                assert_nowhere(CANARY, store)
    assert "replace the key" in printed
    assert Endpoint.keys
    assert set(Endpoint.keys) == {f"Bearer {CANARY}"}
    assert_nowhere(CANARY, tmp_path)
    for form in forms(CANARY):
        assert form not in printed.encode()
        assert not [line for line in seen if form in line]
    assert any(b"agentc.runtime.job" in line for line in seen)
