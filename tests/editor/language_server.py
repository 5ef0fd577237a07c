"""A client of yaml-language-server over standard input and output: the little of the Language
Server Protocol that completion, hover and diagnostics take."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_S

WAIT_S = PATIENCE_S
SETTINGS = {
    "yaml": {
        "validate": True,
        "hover": True,
        "completion": True,
        "schemaStore": {"enable": False},  # nothing is fetched
        "schemas": {},
    }
}


class LanguageServer:
    """A running server; `text` positions are given as (line, column), both from 0."""

    def __init__(self, program: tuple[str, ...], folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [*program, "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.replies: queue.Queue[dict[str, Any]] = queue.Queue()
        self.published: queue.Queue[dict[str, Any]] = queue.Queue()
        self.last = 0
        threading.Thread(target=self._read, daemon=True).start()
        documentation = {"documentationFormat": ["markdown"], "snippetSupport": True}
        self.ask(
            "initialize",
            processId=None,
            rootUri=folder.as_uri(),
            capabilities={
                "workspace": {"configuration": True},
                "textDocument": {"completion": {"completionItem": documentation}},
            },
        )
        self.tell("initialized")

    def open(self, name: str, text: str) -> str:
        """Open a document; its URI."""
        uri = (self.folder / name).as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)
        return uri

    def completions(self, name: str, text: str) -> dict[str, str]:
        """Label -> documentation of what is offered at the `|` in a text."""
        uri, position = self._at(name, text)
        found = self.ask("textDocument/completion", textDocument={"uri": uri}, position=position)
        items = found["items"] if isinstance(found, dict) else found
        return {item["label"]: _text(item.get("documentation")) for item in items or ()}

    def hover(self, name: str, text: str) -> str:
        """What is shown about the thing at the `|` in a text."""
        uri, position = self._at(name, text)
        found = self.ask("textDocument/hover", textDocument={"uri": uri}, position=position)
        return _text(found["contents"]) if found else ""

    def diagnostics(self, name: str, text: str) -> list[dict[str, Any]]:
        """What the server has against a text."""
        uri = self.open(name, text)
        while True:
            found = self.published.get(timeout=WAIT_S)
            if found["uri"] == uri:
                listed: list[dict[str, Any]] = found["diagnostics"]
                return listed

    def close(self) -> None:
        self.process.kill()
        self.process.wait()

    def ask(self, method: str, **params: object) -> Any:
        self.last += 1
        self._send({"id": self.last, "method": method, "params": params})
        while True:
            reply = self.replies.get(timeout=WAIT_S)
            if reply["id"] == self.last:
                assert "error" not in reply, reply
                return reply["result"]

    def tell(self, method: str, **params: object) -> None:
        self._send({"method": method, "params": params})

    def _at(self, name: str, text: str) -> tuple[str, dict[str, int]]:
        before, after = text.split("|", 1)
        uri = self.open(name, before + after)
        lines = before.split("\n")
        return uri, {"line": len(lines) - 1, "character": len(lines[-1])}

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while line := stream.readline():
            length = int(line.split(b":")[1])
            while stream.readline().strip():
                pass  # further headers
            message = json.loads(stream.read(length))
            method = message.get("method")
            if method == "textDocument/publishDiagnostics":
                self.published.put(message["params"])
            elif method == "workspace/configuration":
                items = message["params"]["items"]
                result = [SETTINGS.get(item.get("section", "")) for item in items]
                self._send({"id": message["id"], "result": result})
            elif method is not None and "id" in message:
                self._send({"id": message["id"], "result": None})
            elif method is None:
                self.replies.put(message)


def _text(contents: Any) -> str:
    return contents["value"] if isinstance(contents, dict) else str(contents or "")
