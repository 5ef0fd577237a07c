"""Tasks of ColBench's form that are ours, and environments over them without a server."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agentc.runtime.sandbox.boxes import CodeBox
from agentc.runtime.sandbox.probe import choose_box, probe, refusal
from agentc_backends.environments.colbench.environment import ColBenchEnvironment, ColBenchShared
from agentc_backends.environments.colbench.humans import Human, ScriptedHuman
from agentc_backends.environments.colbench.judging import AnswerJudge
from agentc_backends.environments.colbench.settings import ColBenchSettings
from agentc_backends.environments.colbench.tasks import CodeTask, task_id

SHARED = Path(os.environ.get("AGENTC_SHARED", Path(__file__).parents[4] / "shared"))
BULK = """
def bulk_price(quantity):
    total = quantity * {unit}
    if quantity {over} {threshold}:
        total -= {discount}
    return total
"""
QUANTITIES = (0, 1, 10, 11, 12, 13, 14, 24, 36, 100)
PATIENT = 5.0

Opened = Callable[..., ColBenchEnvironment]


def bulk(unit: int = 7, over: str = ">", threshold: int = 12, discount: int = 3) -> str:
    return BULK.format(unit=unit, over=over, threshold=threshold, discount=discount)


def code_task(description: str, reference: str, calls: Sequence[str], **others: Any) -> CodeTask:
    return CodeTask(
        id=task_id(description, reference),
        description=description,
        reference=reference,
        calls=tuple(calls),
        **others,
    )


BULK_TASK = code_task(
    "Write `bulk_price(quantity)`: the price of an order; large orders get a discount.",
    bulk(),
    [f"bulk_price({quantity})" for quantity in QUANTITIES],
)


def row(task: CodeTask) -> str:
    tests = {f"test{number}": call for number, call in enumerate(task.calls, 1)}
    return json.dumps(
        {
            "problem_description": task.description,
            "ground_truth": task.reference,
            "test_cases": tests,
        }
    )


@pytest.fixture(scope="session")
def box() -> CodeBox:
    """The one that this machine would take."""
    probed = probe()
    if all(each.box is None for each in probed):
        pytest.skip(refusal([*probed]))
    return choose_box()


@pytest.fixture
def opened(box: CodeBox) -> Opened:
    """An environment of some tasks, with a human and settings of one's own."""

    def open_it(
        *tasks: CodeTask, human: Human | None = None, **settings: Any
    ) -> ColBenchEnvironment:
        chosen = ColBenchSettings(**{"tasks": "tasks.jsonl", "test_timeout_s": PATIENT, **settings})
        world = ColBenchShared(
            chosen, {"all": tasks}, {}, AnswerJudge(box, chosen), human or ScriptedHuman()
        )
        return ColBenchEnvironment(world)

    return open_it


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """Bodies of requests to a server that AGENTC_LEASES names, which says the number of each."""
    bodies: list[dict[str, Any]] = []

    class Recorder(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/chat/completions"
            assert self.headers["Authorization"] == "Bearer a token"
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            bodies.append(body)
            choice = {"message": {"content": f" {len(bodies)} "}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1}
            said = json.dumps({"choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        lease = {"url": url, "token": "a token", "model": "sees"}
        file = tmp_path / "leases.json"
        file.write_text(json.dumps({"simulator": lease}))
        monkeypatch.setenv("AGENTC_LEASES", str(file))
        yield bodies
        server.shutdown()
