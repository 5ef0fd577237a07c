"""A hub on loopback that answers what `agentc lock` asks, and serves files of data sets and of a
model."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HEAD = "a" * 40
OLD = "b" * 40


class Hub:
    """A hub that knows `some/model`; `requests` are (path, Authorization) pairs. `files` are those
    of the data set `some/data` at HEAD, `model_files` those of the model; with `token` the data set
    is gated."""

    def __init__(self) -> None:
        self.branches = {"main": HEAD, "v1/x": OLD}
        self.requests: list[tuple[str, str | None]] = []
        self.redirect: str | None = None
        self.files: dict[str, bytes] = {}
        self.model_files: dict[str, bytes] = {}
        self.token: str | None = None
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.requests.append((self.path, self.headers.get("Authorization")))
                if hub.redirect is not None:
                    self.send_response(307)
                    self.send_header("Location", hub.redirect + self.path)
                    self.end_headers()
                    return
                if self.path.startswith("/datasets/"):
                    self.file(self.path.removeprefix("/datasets/"), "some/data", hub.files)
                    return
                if self.path.startswith("/some/model/resolve/"):
                    self.file(self.path[1:], "some/model", hub.model_files)
                    return
                if self.path.startswith(f"/api/models/some/model/tree/{HEAD}"):
                    self.tree()
                    return
                kind, _, path = self.path.removeprefix("/api/").partition("/")
                repo, _, revision = path.partition("/revision/")
                revision = revision.replace("%2F", "/")
                commit = hub.branches.get(revision)
                if revision in hub.branches.values():
                    commit = revision
                names = (("models", "some/model"), ("datasets", "some/data"))
                known = (kind, repo) in names and commit is not None
                body = json.dumps({"sha": commit, "siblings": []} if known else {}).encode()
                self.send_response(200 if known else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_HEAD(self) -> None:
                self.do_GET()

            def tree(self) -> None:
                """The files of the model, as its client lists them."""
                listed = [
                    {"type": "file", "path": name, "size": len(body), "oid": "0" * 40}
                    for name, body in hub.model_files.items()
                ]
                body = json.dumps(listed).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def file(self, path: str, known: str, files: dict[str, bytes]) -> None:
                """A file as the hub resolves it, by the headers that its own client reads."""
                repo, _, rest = path.partition("/resolve/")
                commit, _, name = rest.partition("/")
                found = files.get(name)
                if repo != known:
                    status, code = 404, "RepoNotFound"
                elif (
                    known == "some/data"
                    and hub.token is not None
                    and (self.headers.get("Authorization") != f"Bearer {hub.token}")
                ):
                    status, code = 403, "GatedRepo"
                elif commit != HEAD:
                    status, code = 404, "RevisionNotFound"
                elif found is None:
                    status, code = 404, "EntryNotFound"
                else:
                    status, code = 200, ""
                body = found if status == 200 and found is not None else b""
                self.send_response(status)
                if code:
                    self.send_header("X-Error-Code", code)
                self.send_header("X-Repo-Commit", commit)
                self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
