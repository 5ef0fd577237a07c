"""A policy for tests, as a process of its own: answers from the seed and the conversation alone.

`python policy_server.py READY.json [--mode MODE] [--delay SECONDS]`. Modes: `mixed` gives good,
useless and malformed replies; `marked` ones of several lines, with thoughts before `OUTPUT:`;
`silent` never names an action; `overflow` says after two turns that the prompt is too long; `flaky`
fails every third request with 503; `broken` fails the episodes of every second task; `refuse`
answers 400.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TOKEN = "policy-token"
_MARKED = (
    "it has a d\nOUTPUT: Is it\na ding? OUTPUT: or not",
    "OUTPUT: no\nidea",
    "nothing to hide\nANSWER: dn",
    "I know\nOUTPUT: ANSWER: dong",
)


class Policy(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512
    mode = "mixed"
    delay = 0.0
    requests = 0
    lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Policy

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._send(200, {"status": "ok", "requests": self.server.requests})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._send(401, {"error": {"message": "token"}})
            return
        with self.server.lock:
            self.server.requests += 1
            number = self.server.requests
        # Arrival order is shuffled on purpose: nothing may depend on it.
        time.sleep(self.server.delay * random.random())
        self._send(*answer(body, self.server.mode, number))

    def _send(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def answer(body: dict[str, Any], mode: str, number: int) -> tuple[int, Any]:
    messages = body["messages"]
    turns = sum(m["role"] == "assistant" for m in messages)
    if mode == "flaky" and number % 3 == 0:
        return 503, {"error": {"message": "busy"}}
    if mode == "broken" and hashlib.sha256(messages[2]["content"].encode()).digest()[0] % 2:
        return 500, {"error": {"message": "cuda error"}}
    if mode == "refuse":
        return 400, {"error": {"message": "unsupported field: seed", "code": "unsupported_field"}}
    if mode == "overflow" and turns >= 3:  # the acknowledgement is one
        return 400, {"error": {"message": "too long", "code": "context_length_exceeded"}}
    text = reply(body, mode)
    choice: dict[str, Any] = {
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    if body.get("return_token_ids"):  # one for each letter, and the end
        ids = [*map(ord, text), 0]
        scores = [{"token": chr(i), "logprob": -0.5 - (i % 7) / 10} for i in ids]
        choice |= {"token_ids": ids, "logprobs": {"content": scores}}
    return 200, {
        "choices": [choice],
        "usage": {"prompt_tokens": len(json.dumps(messages)) // 4, "completion_tokens": 7},
    }


def reply(body: dict[str, Any], mode: str) -> str:
    if mode == "silent":
        return "I would rather not."
    chance = random.Random(body["seed"])
    if mode == "marked":
        return chance.choice(_MARKED)
    commands = re.findall(r"craft .* using .*", body["messages"][-1]["content"])
    commands += re.findall(r"craft .* using .*", body["messages"][0]["content"])
    draw = chance.random()
    if draw < 0.1:
        return "hm, é \ud800 <script>"
    if draw < 0.5:
        return "Thought: look\nAction: inventory"
    if commands and draw < 0.8:
        return f"Thought: craft\nAction: {chance.choice(commands)}"
    return f"Action: get {chance.randint(1, 3)} oak log"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("ready", type=Path)
    parser.add_argument("--mode", default="mixed")
    parser.add_argument("--delay", type=float, default=0.0)
    options = parser.parse_args()
    server = Policy(("127.0.0.1", 0), Handler)
    server.mode, server.delay = options.mode, options.delay
    draft = options.ready.with_suffix(".part")
    draft.write_text(json.dumps({"host": "127.0.0.1", "port": server.server_port}), "utf-8")
    draft.replace(options.ready)
    server.serve_forever()


if __name__ == "__main__":
    main()
