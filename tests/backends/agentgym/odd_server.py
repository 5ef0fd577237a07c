"""A server in the manner of the family's `env_idx` half (WebShop, SQLGym): bare numbers from
/create, replies as lists, no /close, 500s, and sessions handed out twice once there are too many.

`python odd_server.py PORT --most N`. Tasks 0 to 9; the action `add K` adds up to the task's number
plus 3, which ends the episode with reward 1. `crash` answers 500, `refuse` an error in a 200,
`hang` nothing for a while, and then it adds 100.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

parser = argparse.ArgumentParser()
parser.add_argument("port", type=int)
parser.add_argument("--most", type=int, default=8)
options = parser.parse_args()

worlds: list[dict[str, Any]] = []
created = 0
lock = threading.Lock()


def create() -> Any:
    global created
    with lock:
        created += 1
        if len(worlds) < options.most:
            worlds.append({"goal": 0, "count": 0})
            return len(worlds) - 1
        return (created - 1) % options.most


def reset(body: dict[str, Any]) -> Any:
    world = worlds[body["env_idx"]]
    if not 0 <= body["item_id"] < 10:
        raise ValueError("out of range")
    world.update(goal=body["item_id"] + 3, count=0)
    return [f"Reach {world['goal']}.", None]


def step(body: dict[str, Any]) -> Any:
    world, action = worlds[body["env_idx"]], body["action"]
    if action == "crash":
        raise RuntimeError("crashed")
    if action == "refuse":
        return {"error": "no such table"}
    if action == "hang":
        time.sleep(7)
        world["count"] += 100
    verb, _, number = action.partition(" ")
    if verb == "add" and number.isdigit():
        world["count"] += int(number)
    done = world["count"] >= world["goal"]
    told = {"state": f"{world['count']} of {world['goal']}", "reward": float(done), "done": done}
    return {**told, "info": None}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/":
            self._send(200, "ok")
        elif self.path == "/list_envs":
            self._send(200, list(range(len(worlds))))
        else:
            self._send(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(data) if data else {}
            if self.path == "/create":
                self._send(200, create())
            elif self.path in ("/reset", "/step"):
                self._send(200, (reset if self.path == "/reset" else step)(body))
            else:
                self._send(404, {"detail": "Not Found"})
        except Exception:
            self._send(500, "Internal Server Error")

    def log_message(self, format: str, *values: Any) -> None:
        pass

    def _send(self, status: int, content: Any) -> None:
        payload = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


Server(("127.0.0.1", options.port), Handler).serve_forever()
