"""A server that repeats what it was shown: none of it is in what the job says and leaves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.backends.rank.test_job_rank import PLACEMENT, RANK, critic, drawn, hidden, turn

SECRET = "seven for each"


class Repeater(ThreadingHTTPServer):
    status = 0


class Handler(BaseHTTPRequestHandler):
    server: Repeater

    def do_GET(self) -> None:
        self._send(200, b"{}")

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        self._send(self.server.status, b"it failed on " + asked)

    def _send(self, status: int, raw: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *words: object) -> None:
        del words


@pytest.fixture
def repeater() -> Iterator[Repeater]:
    with Repeater(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "BadRequestError, status 400"), (500, "InfrastructureError")],
)
def test_what_a_critic_is_told_is_in_no_message(
    run_job: Any, repeater: Repeater, tmp_path: Path, status: int, kind: str
) -> None:
    repeater.status = status
    given = drawn(tmp_path, turn("a")) | {"critic": [critic(tmp_path / "critic")]}
    given["privileged"] = hidden(tmp_path, a=SECRET)
    lease = {
        "url": f"http://127.0.0.1:{repeater.server_address[1]}",
        "token": "t", "model": "policy", "log": "policy.log",
    }  # fmt: skip
    done = run_job(
        RANK, {"span": "reply"}, placement={**PLACEMENT, "error_budget": 1.0}, inputs=given,
        leases={"policy": lease},
    )  # fmt: skip
    assert done.code == 1, done.output
    left = [path.read_text() for path in done.staging.rglob("*.jsonl")]
    assert kind in "".join([done.output, *left])
    assert not any(SECRET in text for text in [done.output, *left])
