"""A web server on this machine that serves files as release pages do: ranges, entity tags,
redirects; and that can break off, lie about sizes, or change its mind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Files:
    """What is served. `cut` ends an answer after so many bytes, once for each entry; `asked` are
    the ranges that were asked for."""

    content: dict[str, bytes]
    tag: str | None = '"1"'
    cut: list[int] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    says_length: bool = True
    asked: list[str | None] = field(default_factory=list)
    address: str = ""


@contextmanager
def served(files: Files) -> Iterator[Files]:
    """The files behind `files.address`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            files.asked.append(wanted)
            if self.path in files.moved:
                self.send_response(302)
                self.send_header("Location", files.moved[self.path])
                self.end_headers()
                return
            content = files.content.get(self.path)
            if content is None:
                self.send_error(404)
                return
            start = 0
            if wanted and self.headers.get("If-Range") == files.tag:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if start >= len(content):
                    self.send_error(416)
                    return
                self.send_response(206)
                self.send_header(
                    "Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}"
                )
            else:
                self.send_response(200)
            if files.says_length:
                self.send_header("Content-Length", str(len(content) - start))
            if files.tag:
                self.send_header("ETag", files.tag)
            self.end_headers()
            body = content[start:]
            self.wfile.write(body[: files.cut.pop(0)] if files.cut else body)

        def log_message(self, format: str, *values: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    files.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield files
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
