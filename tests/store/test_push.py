"""`agentc push`: the folder and its card, read and uploaded by huggingface_hub itself."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tiny_plan import TinyPlan

from agentc.cli import main

METRICS = {
    "environment": "textcraft",
    "split": "test",
    "n": 20,
    "n_error": 0,
    "n_tasks": 20,
    "name": "textcraft/test",
    "reward": {"mean": 0.25, "low": 0.112, "high": 0.469, "n": 20, "confidence": 0.95},
    "success": {"mean": 0.5, "low": 0.3, "high": 0.7, "n": 20, "confidence": 0.95},
    "tasks": {str(task): {"attempts": 1, "reward": 0.25, "success": 0.5} for task in range(20)},
    "turns": {"mean": 4.5},
}


@pytest.fixture
def made(plan: TinyPlan) -> TinyPlan:
    """A base model, one tuned from it, and an evaluation of each."""
    plan.job(
        "base", "checkpoint.py", kind="model", produces="Checkpoint", repo="meta-llama/Llama-2-7b"
    )
    plan.job(
        "tuned", "checkpoint.py", kind="sft", produces="Checkpoint", inputs={"model": ["base"]},
        seed=3, extra={"steps.log": "no file of a model", "run.json": "{}"},
    )  # fmt: skip
    for model in ("base", "tuned"):
        plan.job(f"{model}_plays", inputs={"model": [model]}, rows=1)
        plan.job(
            f"{model}_scores", "metrics.py", kind="evaluate", produces="Metrics",
            inputs={"rollouts": [f"{model}_plays"]},
            document=METRICS if model == "tuned" else {**METRICS, "environment": "other"},
        )  # fmt: skip
    for job in plan.jobs:
        done = plan.run(job["id"])
        assert done.returncode == 0, done.stderr
    return plan


@pytest.fixture
def spec(made: TinyPlan, tmp_path: Path) -> Path:
    """What was run, committed; the store has a run of it."""
    path = tmp_path / "project" / "tiny.yaml"
    path.parent.mkdir()
    path.write_text("agentc: 1\nname: tiny\n# a fence: ```\n")
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "A spec"]):
        subprocess.run(["git", *words], cwd=path.parent, check=True)
    document = json.loads(made.path.read_text())
    document["spec"]["sha256"] = sha256(path.read_bytes()).hexdigest()
    document["experiment"]["description"] = "A tiny experiment."
    document["experiment"]["scale"] = "smoke"
    runs = made.store / "runs" / "tiny"
    runs.mkdir(parents=True)
    (runs / "last-plan.json").write_text(json.dumps(document))
    return path


def push(plan: TinyPlan, *words: str | Path) -> int:
    return main(["push", *map(str, words), "--store", str(plan.store)])


def test_the_folder_holds_a_model_and_a_card_that_the_hubs_tool_reads(
    made: TinyPlan, spec: Path, tmp_path: Path
) -> None:
    from huggingface_hub import ModelCard

    folder = tmp_path / "folder"
    words = ("tuned", "--spec", spec, "--license", "apache-2.0", "--to", folder)
    assert push(made, *words) == 0
    names = {path.name for path in folder.iterdir()}
    assert {"README.md", "provenance.json", "model.safetensors", "config.json"} <= names
    assert not names & {"steps.log", "run.json"}
    card = ModelCard.load(folder / "README.md")
    assert card.data.base_model == ["meta-llama/Llama-2-7b"]
    assert (card.data.license, card.data.library_name) == ("apache-2.0", "transformers")
    result, success = card.data.eval_results
    assert success.metric_value == 0.5
    assert (result.dataset_type, result.dataset_split) == ("textcraft", "test")
    assert (result.metric_type, result.metric_value) == ("reward", 0.25)
    for text in (
        "| tuned_scores | textcraft, test | reward | 0.25 |",
        "95% interval 0.112 to 0.469, n = 20",
        "reduced scale `smoke`",
        "seeds: `seed: 3`",
        "```sh\nagentc run tiny.yaml --scale smoke --until tuned\n```",
        f"````yaml\n{spec.read_text()}````",
    ):
        assert text in card.text, text
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=spec.parent, capture_output=True, text=True, check=True
    )
    assert f"at commit `{head.stdout.strip()}`" in card.text
    provenance = json.loads((folder / "provenance.json").read_text())
    assert provenance["object"] == made.object("tuned")
    assert all("host" not in entry["hardware"] for entry in provenance["objects"])


def test_a_cell_that_another_run_made_is_called_as_in_this_one(
    made: TinyPlan, spec: Path, tmp_path: Path
) -> None:
    plan = made.store / "runs" / "tiny" / "last-plan.json"
    plan.write_text(plan.read_text().replace('"id": "tuned"', '"id": "tuned@seed=3"'))
    assert push(made, "tuned", "--to", tmp_path / "folder") == 0
    card = (tmp_path / "folder" / "README.md").read_text()
    assert "This model is stage `tuned@seed=3` of the experiment" in card
    assert "agentc run tiny.yaml --scale smoke --until tuned@seed=3\n" in card
    assert "\n# tiny-tuned-seed-3\n" in card


def test_what_cannot_be_pushed(
    made: TinyPlan, spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert push(made, "tuned") == 2
    assert "OWNER/NAME" in capsys.readouterr().err
    assert push(made, "tuned_plays", "--dry-run") == 5
    assert "is no checkpoint but Trajectories" in capsys.readouterr().err
    assert push(made, "tunde", "--dry-run") == 5
    assert push(made, "tuned", "--to", tmp_path) == 2
    spec.write_text("agentc: 1\nname: another\n")
    assert push(made, "tuned", "--dry-run", "--spec", spec) == 2
    assert "is not the spec that was run" in capsys.readouterr().err


class _Hub(ThreadingHTTPServer):
    """What a hub answers to huggingface_hub while it uploads a small folder in one commit."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.asked: list[tuple[str, str | None, Any]] = []
        self.refuses = False


class _Answers(BaseHTTPRequestHandler):
    server: _Hub

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        lines = [json.loads(line) for line in body.splitlines() if line]
        token = self.headers.get("Authorization")
        self.server.asked.append((self.path, token, lines))
        if self.server.refuses:
            return self._answer(403, {"error": "no"})
        if self.path.endswith("/preupload/main"):
            files = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                for file in lines[0]["files"]
            ]
            return self._answer(200, {"files": files})
        place = f"http://127.0.0.1:{self.server.server_port}/me/tiny"
        return self._answer(
            200,
            {
                "url": place, "id": "me/tiny", "commitUrl": f"{place}/commit/1", "commitOid": "1",
                "errors": [], "warnings": [],
            },
        )  # fmt: skip

    def do_GET(self) -> None:
        self.server.asked.append((self.path, None, None))
        self._answer(200, {"id": "me/tiny", "sha": "0" * 40, "siblings": []})

    def _answer(self, code: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: tests read what was asked."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Hub]:
    import huggingface_hub.constants

    server = _Hub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # HF_ENDPOINT is read when the library is imported, which other tests may have done.
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_secret_of_a_test")
    yield server
    server.shutdown()
    server.server_close()


def test_the_hubs_tool_uploads_it_in_one_private_commit(
    made: TinyPlan, spec: Path, hub: _Hub, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert push(made, "tuned", "me/tiny", "--to", tmp_path / "kept") == 0
    assert "/commit/1" in capfd.readouterr().out
    asked = {path: lines for path, _, lines in hub.asked}
    assert asked["/api/repos/create"][0]["visibility"] == "private"
    [commit] = [lines for path, lines in asked.items() if "/commit/" in path]
    files = {line["value"]["path"] for line in commit if line["key"] == "file"}
    assert files == {path.name for path in (tmp_path / "kept").iterdir()}
    tokens = {token for path, token, _ in hub.asked if "commit" in path}
    assert tokens == {"Bearer hf_secret_of_a_test"}
    assert not any(b"hf_secret" in path.read_bytes() for path in (tmp_path / "kept").iterdir())


def test_a_hub_that_refuses_is_told_in_a_line(
    made: TinyPlan, spec: Path, hub: _Hub, capfd: pytest.CaptureFixture[str]
) -> None:
    hub.refuses = True
    assert push(made, "tuned", "me/tiny") == 3
    told = capfd.readouterr().err
    assert "me/tiny was not pushed: " in told
    assert "Traceback" not in told
