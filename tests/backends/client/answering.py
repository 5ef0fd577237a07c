"""A server that answers as a test tells it to, over real sockets, and counts what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """`hang_up` closes the connection instead of answering, after the request has been read."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    hang_up: bool = False


@dataclass(slots=True)
class Scripted:
    """`seen` lists (path, body, headers) in order of arrival."""

    url: str
    seen: list[tuple[str, Any, Mapping[str, str]]]

    @property
    def paths(self) -> list[str]:
        return [path for path, _, _ in self.seen]


Serve = Callable[..., Scripted]


@contextmanager
def serving(answer: Callable[[int, str, Any], Answer]) -> Iterator[Scripted]:
    seen: list[tuple[str, Any, Mapping[str, str]]] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _handle(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            with lock:
                number = len(seen)
                seen.append((self.path, body, dict(self.headers)))
            reply = answer(number, self.path, body)
            if reply.hang_up:
                self.close_connection = True
                return
            raw = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = _handle  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield Scripted(f"http://127.0.0.1:{server.server_address[1]}", seen)
    finally:
        server.shutdown()
        server.server_close()
