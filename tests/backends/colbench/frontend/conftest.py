"""Pages that are ours, and environments over them without a server; one browser for all tests of a
worker."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("skimage", reason="scikit-image is not installed: make setup")

from agentc.runtime.browser.box import NoBrowserError
from agentc_backends.environments.colbench.frontend.environment import (
    FrontendEnvironment,
    FrontendShared,
)
from agentc_backends.environments.colbench.frontend.human import PageHuman, ScriptedPageHuman
from agentc_backends.environments.colbench.frontend.invented import invent
from agentc_backends.environments.colbench.frontend.pages import PageTask, page_task
from agentc_backends.environments.colbench.frontend.settings import FrontendSettings
from agentc_backends.environments.colbench.frontend.studio import PageStudio

SECRET = "canary-of-the-wanted-page"
WANTED = (
    '<html><link rel="stylesheet" href="https://pages.invalid/style.css"><body>'
    f"<!-- {SECRET} -->"
    '<header class="blue center"><h1 class="large">Oak Bakery</h1></header>'
    '<main class="two"><section class="grey"><h2>Prices</h2></section>'
    '<section class="grey"><h2>Hours</h2></section></main>'
    '<footer class="blue">Open daily</footer></body></html>'
)
TASK = page_task("A page for a bakery.", WANTED)
OTHER = page_task("A page for a zoo.", WANTED.replace("Oak Bakery", "River Zoo"))

OpenedPages = Callable[..., FrontendEnvironment]


@pytest.fixture(scope="session")
def studio() -> Iterator[PageStudio]:
    made = PageStudio(FrontendSettings(page_seconds=3.0, browsers=1), None)
    try:
        made.facts()
    except NoBrowserError as error:
        if os.environ.get("AGENTC_REQUIRE_BROWSER"):
            raise
        pytest.skip(str(error))
    yield made
    made.close()


@pytest.fixture
def opened_pages(studio: PageStudio) -> OpenedPages:
    """An environment of some tasks, else of ten invented ones, with a human and settings of one's
    own."""

    def open_it(
        *tasks: PageTask, human: PageHuman | None = None, **settings: Any
    ) -> FrontendEnvironment:
        chosen = FrontendSettings(**{"tasks": "pages.jsonl" if tasks else "invented", **settings})
        invented = {} if tasks else invent(chosen)
        of = tasks or tuple(each.task for each in invented.values())
        world = FrontendShared(chosen, {"all": of}, invented, studio, human or ScriptedPageHuman())
        return FrontendEnvironment(world)

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
