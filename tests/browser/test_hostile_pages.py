"""Pages that mean harm: none gets out of its box, and the page after it is rendered as ever."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.patience import wait_for

from agentc.runtime.browser.process import BoxedBrowser
from agentc.runtime.browser.render import Renderer

GOOD = "<h1>Good</h1><p>words</p>"
USES = "".join(
    f'<g id="g{n}">' + f'<use href="#g{n - 1}"/>' * 10 + "</g>"
    if n
    else '<rect id="g0" width="9"/>'
    for n in range(9)
)
HEAVY = {
    "uses": f'<svg width="900" height="900"><defs>{USES}</defs><use href="#g8"/></svg>',
    "filters": "<div style='filter:blur(40px) hue-rotate(9deg) drop-shadow(9px 9px 9px red)'>x"
    * 3000,
    "tables": "<table><tr><td>" * 4000 + "deep",
}
TOO_LARGE = {
    "tall": "<div style='height:2000000px;background:red'>x</div>",
    "wide": "<div style='width:300000px;height:300000px;background:linear-gradient(red,blue)'>x",
}
HARMLESS = {
    "loop": "<script>for(;;);</script>",
    "handler": "<img src=x onerror='for(;;);'><svg onload='for(;;);'></svg>",
    "refresh": '<meta http-equiv="refresh" content="0;url=http://a.example/">',
    "link": "<a href='javascript:for(;;);' autofocus>x</a>",
    "file": "<img src='file:///etc/passwd'><iframe src='file:///etc/passwd'></iframe>"
    "<object data='file:///etc/passwd'></object>",
    "alert": "<script>alert(1);print();open('http://a.example')</script>",
    "form": "<form action='http://a.example'><button autofocus>x</button></form>",
    "nul": "<p>\0\ud800</p>",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_scripts_and_addresses_would_do_is_not_done(renderer: Renderer, name: str) -> None:
    starts = renderer.restarts
    assert renderer.render(HARMLESS[name]).verdict == "ok"
    assert renderer.restarts == starts


@pytest.mark.parametrize("name", TOO_LARGE)
def test_of_a_large_page_the_upper_part_is_shown(renderer: Renderer, name: str) -> None:
    found = renderer.render(TOO_LARGE[name])
    assert found.verdict == "clipped"
    assert found.height > 200_000
    assert int.from_bytes(found.png[20:24], "big") == 8192


@pytest.mark.parametrize("name", HEAVY)
def test_a_page_that_takes_too_long_costs_itself_alone(
    renderer: Renderer, hasty_renderer: Renderer, name: str
) -> None:
    before = renderer.render(GOOD)
    found = hasty_renderer.render(HEAVY[name])
    # A fast machine may come to the end of nested tables; nothing does of so many references.
    assert found.verdict == "timeout" or (name == "tables" and found.verdict == "clipped")
    assert (found.png == b"") == (found.verdict == "timeout")
    assert hasty_renderer.render(GOOD) == before


@pytest.fixture
def listener() -> Iterator[tuple[int, list[int]]]:
    """A port of this machine, and who came."""
    came: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    caller, _ = server.accept()
                except OSError:
                    return
                came.append(1)
                caller.close()

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], came


def test_the_box_itself_has_no_files_and_no_network(
    renderer: Renderer, listener: tuple[int, list[int]], tmp_path: Path
) -> None:
    """Were a page to take over the browser: whatever it is told to open is not there."""
    renderer.render(GOOD)
    browser = renderer._browser
    assert isinstance(browser, BoxedBrowser)
    secret = tmp_path / "secret.html"
    secret.write_text("canary")
    port, came = listener
    made = _call(browser, "Target.createTarget", url="about:blank")
    session = _call(browser, "Target.attachToTarget", targetId=made["targetId"], flatten=True)
    for address in (
        "file:///etc/passwd",
        f"file://{secret}",
        f"http://127.0.0.1:{port}/",
        "http://localhost/",
        "http://example.org/",
    ):
        went = browser.devtools.call(
            "Page.navigate", {"url": address}, session=session["sessionId"], until=_far()
        )
        assert went["errorText"].startswith("net::ERR_"), address
    assert came == []
    listed = browser.devtools.call(
        "Page.navigate", {"url": "file:///"}, session=session["sessionId"], until=_far()
    )
    if "errorText" not in listed:
        shown = "document.readyState == 'complete' ? document.body.innerText : null"

        def listing() -> str | None:
            """None while the page is being made."""
            found = browser.devtools.call(
                "Runtime.evaluate",
                {"expression": shown},
                session=session["sessionId"],
                until=_far(),
            )
            text: str | None = found["result"].get("value")
            return text

        text = wait_for(listing)
        names = {line.split("\t")[0].strip("/") for line in text.splitlines()}
        assert not names & {"root", "home", "work", "var", "srv", "mnt"}
    _call(browser, "Target.closeTarget", targetId=made["targetId"])


def _far() -> float:
    return threading.TIMEOUT_MAX


def _call(browser: BoxedBrowser, method: str, **params: object) -> dict[str, str]:
    return browser.devtools.call(method, params, until=_far())
