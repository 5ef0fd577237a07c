"""Answers as a recorded server did: `python recorded_server.py exchanges.jsonl ready-file`.

A request is answered by the next exchange of the recording with the same method, path and body,
after the one before; where none is left, by the first of all. Anything else is a 404 that says
what was asked, so that a client which speaks differently is found out.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

EXCHANGES = [json.loads(line) for line in Path(sys.argv[1]).read_text("utf-8").splitlines()]
_next = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer("GET", None)

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        self._answer("POST", json.loads(data) if data else None)

    def log_message(self, format: str, *values: Any) -> None:
        pass

    def _answer(self, method: str, body: Any) -> None:
        global _next
        asked = (method, self.path, body)
        for index in (*range(_next, len(EXCHANGES)), *range(_next)):
            each = EXCHANGES[index]
            if (each["method"], each["path"], each["request"]) == asked:
                _next = index + 1
                self._send(each["status"], each["response"])
                return
        self._send(404, {"detail": f"never recorded: {asked}"})

    def _send(self, status: int, content: Any) -> None:
        payload = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
Path(sys.argv[2]).write_text(str(server.server_port))
server.serve_forever()
