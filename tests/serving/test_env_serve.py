"""`agentc serve`: settings are checked as a spec's, and the server is a real one."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.by_hand_server import served
from tests.support.patience import PATIENCE_S

from agentc.cli import main
from agentc.runtime.software.lock_text import lock_digest
from agentc_backends.software import LIGHT

AGENTC = str(Path(sys.executable).with_name("agentc"))
SPEC = """\
agentc: 1
name: two
params: {depth: {type: int, default: 2, doc: "Depth of goals."}}
environments:
  short: {backend: textcraft, max_depth: "{{ depth }}"}
  guess: {backend: twenty_questions}
prompts: {react: {instruction: Act., reply_format: react}}
stages:
  expert: {kind: expert, environment: short, split: test}
  other: {kind: expert, environment: guess, split: train}
"""

ASKED = """\
agentc: 1
name: asked
environments:
  city: {{backend: guess_my_city, oracle: model, simulator: {{server: host}}}}
  started: {{backend: guess_my_city, oracle: model, simulator: {{server: ours, model: base}}}}
servers:
  host: {{backend: openai, url: "{url}", model: somebody, api_key: {{secret: HOST_KEY}}}}
  ours: {{backend: transformers}}
models: {{base: {{backend: scratch, corpus: expert}}}}
stages:
  expert: {{kind: expert, environment: city, split: train}}
  other: {{kind: expert, environment: started, split: train}}
"""


@dataclass
class Serving:
    """A running command and what it has printed: address, token, the lines of an episode."""

    process: subprocess.Popen[str]
    lines: list[str]

    @property
    def url(self) -> str:
        return self.lines[0].split(" is at ")[1].split(",")[0]

    def stop(self) -> str:
        self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        return out


@pytest.fixture
def serve(tmp_path: Path, repository: Path) -> Iterator[Callable[..., Serving]]:
    folder = Path(os.environ.get("AGENTC_SOFTWARE", repository / ".agentc" / "software"))
    built = lock_digest(LIGHT.text)[:16]
    if not (folder / built / "complete.json").exists():
        pytest.skip("the software stack `light` is not built: `make software`")
    started: list[subprocess.Popen[str]] = []

    def start(*words: str, **variables: str) -> Serving:
        process = subprocess.Popen(
            [AGENTC, "serve", *words],
            stdout=subprocess.PIPE, text=True, cwd=tmp_path,
            env={**os.environ, "AGENTC_SOFTWARE": str(folder), **variables},
        )  # fmt: skip
        started.append(process)
        assert process.stdout is not None
        lines = [process.stdout.readline().rstrip("\n") for _ in range(6)]
        assert process.poll() is None, lines
        return Serving(process, lines)

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_it_serves_until_ctrl_c(serve: Callable[..., Serving]) -> None:
    serving = serve("textcraft", "max_depth=2")
    assert serving.lines[0].startswith("env.textcraft is at http://127.0.0.1:")
    token = serving.lines[1].removeprefix("token: ")
    assert len(token) == 32
    # The lines of the episode, word for word, by what curl would send.
    answers = []
    for line in serving.lines[3:]:
        words = shlex.split(line)
        assert [*words[:3], words[5]] == ["curl", "-s", "-H", "-d"]
        name, _, value = words[3].partition(": ")
        request = urllib.request.Request(words[4], words[6].encode(), {name: value})
        with urllib.request.urlopen(request) as answer:
            answers.append(json.load(answer))
    created, started, acted = answers
    assert f'"id": {created["id"]},' in serving.lines[4]
    assert "Goal" in started["observation"] or "goal" in started["observation"]
    assert acted["observation"] != started["observation"]
    assert not acted["observation"].startswith("Could not")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(serving.url + "/meta")
    port = int(serving.url.rsplit(":", 1)[1])
    assert serving.stop() == "env.textcraft: stopped\n"
    assert serving.process.returncode == 0
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return
        time.sleep(0.1)
    pytest.fail("the server outlives the command")


def test_an_entry_of_a_spec_without_a_token_at_a_port(
    serve: Callable[..., Serving], tmp_path: Path
) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ("--spec", "spec.yaml", "short", "-p", "depth=3", "--no-token", "--port", str(port))
    serving = serve(*words)
    assert serving.url == f"http://127.0.0.1:{port}"
    assert serving.lines[1] == "token: none is asked for"
    assert serving.lines[3] == f"  curl -s http://127.0.0.1:{port}/create -d '{{}}'"
    with urllib.request.urlopen(serving.url + "/meta") as answer:
        assert b'"max_depth":3' in answer.read()
    taken = subprocess.run(
        [AGENTC, "serve", "textcraft", "--port", str(port)],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S, cwd=tmp_path,
    )  # fmt: skip
    said = f"agentc: port {port} is taken; name another one\n"
    assert (taken.returncode, taken.stderr) == (3, said)
    serving.stop()


def test_a_token_of_ones_own(serve: Callable[..., Serving]) -> None:
    serving = serve("textcraft", AGENTC_TOKEN="of-my-own")
    assert serving.lines[1] == "token: of-my-own"
    serving.process.send_signal(signal.SIGTERM)
    assert serving.process.wait(PATIENCE_S) == 0


def test_a_server_that_asks_a_model_at_somebodys_endpoint(
    serve: Callable[..., Serving], tmp_path: Path
) -> None:
    """The model's key goes to the model alone: who plays has another."""
    rules = json.dumps([{"match": "Asia", "reply": "Not in Asia."}])
    words = ("--rules", rules, "--served-name", "somebody")
    module = "agentc_backends.servers.scripted.job_serve"
    with served(tmp_path, LIGHT, module, "key-of-the-host", *words) as url:
        (tmp_path / "spec.yaml").write_text(ASKED.format(url=url), encoding="utf-8")
        serving = serve("--spec", "spec.yaml", "city", HOST_KEY="key-of-the-host")
        token = serving.lines[1].removeprefix("token: ")
        number = post(serving.url + "/create", {}, token)
        number = number["id"] if isinstance(number, dict) else number
        post(serving.url + "/reset", {"id": number, "task_id": "Paris, France"}, token)
        heard = post(serving.url + "/step", {"id": number, "action": "Is it in Asia?"}, token)
        assert heard["observation"] == "Not in Asia."
        serving.stop()


def post(url: str, body: dict[str, Any], token: str) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.loads(answer.read())


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["textcraft", "max_dept=2"], 1, "did you mean `max_depth`?"),
        (["textcraft", "max_dept=2"], 1, "error[AGC201]: `max_dept=2`: unknown key `max_dept`"),
        (["textcraft", "max_depth=deep"], 1, "expected: a whole number of at least 1"),
        (["textcraft", "max_depth=[2"], 1, "the `[` is not closed"),
        (["textcaft"], 1, "did you mean `textcraft`?"),
        (["alfworld", "games=/etc"], 1, "--allow-path /etc"),
        (["textcraft", "deep"], 2, "a setting is SETTING=VALUE, not `deep`"),
        ([], 2, "name a backend"),
        (["textcraft", "--no-token", "--host", "0.0.0.0"], 2, "leave it out"),
        (["textcraft", "--port", "70000"], 2, "70000 is no port"),
        (["--spec", "spec.yaml"], 2, "it has `short`, `guess`"),
        (["--spec", "spec.yaml", "shorts"], 5, "did you mean `short`?"),
        (["--spec", "spec.yaml", "short", "max_depth=2"], 2, "the settings are the spec's"),
        (["--spec", "asked.yaml", "started"], 1, "make `ours` that endpoint"),
        (["guess_my_city", "oracle=model"], 1, "with these settings it calls a model server"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    says: str,
) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    asked = ASKED.format(url="http://127.0.0.1:1/v1")
    (tmp_path / "asked.yaml").write_text(asked, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["serve", *words]) == code
    assert says in capsys.readouterr().err
