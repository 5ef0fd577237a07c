"""An OpenEnv server in a thread that holds one episode at a time, and counts what it holds.

Its episodes go by what they are told: `crash`, `refuse`, `hang up`, `nan`, `end`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

SCHEMA = {"action": {"properties": {"message": {"type": "string"}}, "required": ["message"]}}
ABOUT = {"name": "odd", "description": "odd", "version": "3"}


class Odd:
    """`held` are the connections that have an episode, `most` how many there may be."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.held = 0
        self.closed_properly = 0
        self.resets: list[dict[str, Any]] = []
        self.url = ""
        self._lock = threading.Lock()

    def answer(self, connection: ServerConnection, request: Request) -> Response | None:
        found = {"/schema": SCHEMA, "/metadata": ABOUT}.get(request.path)
        if found is None:
            return None
        body = json.dumps(found).encode()
        headers = Headers({"Content-Length": str(len(body)), "Connection": "close"})
        return Response(HTTPStatus.OK, "OK", headers, body)

    def converse(self, connection: ServerConnection) -> None:
        with self._lock:
            full = self.held >= self.most
            self.held += not full
        if full:
            connection.send(_error("CAPACITY_REACHED", "all are taken"))
            return
        try:
            for text in connection:
                message = json.loads(text)
                if message["type"] == "close":
                    self.closed_properly += 1
                    return
                if message["type"] == "reset":
                    self.resets.append(message["data"])
                    connection.send(_observation(f"task {message['data']['seed']}"))
                    continue
                match message["data"]["message"]:
                    case "hang up":
                        return
                    case "crash":
                        connection.send(_error("EXECUTION_ERROR", "no such thing"))
                    case "refuse":
                        connection.send(_error("VALIDATION_ERROR", "Invalid message"))
                    case "nan":
                        connection.send(_observation("n", reward="much"))
                    case word:
                        connection.send(_observation(word, reward=0.5, done=word == "end"))
        finally:
            with self._lock:
                self.held -= 1


@contextmanager
def odd_server(most: int = 1) -> Iterator[Odd]:
    odd = Odd(most)
    with serve(odd.converse, "127.0.0.1", 0, process_request=odd.answer) as server:
        odd.url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield odd
        server.shutdown()
        thread.join()


def _observation(text: str, reward: Any = None, done: bool = False) -> str:
    data = {"observation": {"said": text}, "reward": reward, "done": done}
    return json.dumps({"type": "observation", "data": data})


def _error(code: str, message: str) -> str:
    return json.dumps({"type": "error", "data": {"message": message, "code": code}})
