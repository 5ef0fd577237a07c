"""What a page becomes: a picture, texts with their places, and what it asked for."""

from __future__ import annotations

import struct

from tests.browser.conftest import STYLE_ADDRESS

from agentc.runtime.browser.render import Renderer

PAGE = (
    f'<!doctype html><html><head><link rel=stylesheet href="{STYLE_ADDRESS}"></head><body>'
    '<div class="wide">First words</div><p>Second</p></body></html>'
)


def _size(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_a_page_is_a_picture_and_its_texts(renderer: Renderer) -> None:
    found = renderer.render(PAGE)
    assert (found.verdict, found.refused) == ("ok", {})
    assert _size(found.png) == (1280, 720)
    first, second = found.blocks
    assert (first.text, first.x, first.y, first.size) == ("First words", 0.0, 0.0, 16.0)
    assert (first.color, first.background) == ((255, 255, 255), (0x12, 0x34, 0x56))
    assert (second.text, second.background) == ("Second", (255, 255, 255))
    assert second.y > first.height


def test_equal_pages_have_equal_pictures(renderer: Renderer) -> None:
    moving = (
        "<style>@keyframes go{from{margin-left:0}to{margin-left:900px}}"
        "p{animation:go 1s infinite}</style><p>It moves</p>"
    )
    for page in (PAGE, moving):
        assert renderer.render(page) == renderer.render(page)


def test_only_what_the_table_has_is_answered_and_the_rest_counted(renderer: Renderer) -> None:
    asks = (
        '<style>@import url("http://a.example/x.css"); b{background:url(https://b.example/y.png)}'
        '</style><img src="http://a.example/z.png"><img src="http://169.254.169.254/latest">'
        '<iframe src="http://c.example/"></iframe><b>there</b>'
    )
    found = renderer.render(asks)
    assert found.verdict == "ok"
    assert found.refused == {"a.example": 2, "b.example": 1, "169.254.169.254": 1, "c.example": 1}


def test_parts_that_have_the_names_of_a_document_s(renderer: Renderer) -> None:
    names = ("createTreeWalker", "createRange", "documentElement", "body")
    forms = "".join(f'<img name="{name}"><form name="{name}"></form>' for name in names)
    found = renderer.render(forms + "<p>still measured</p>")
    assert [block.text for block in found.blocks] == ["still measured"]


def test_nothing_is_kept_for_the_next_page(renderer: Renderer) -> None:
    before = renderer.render(PAGE)
    renderer.render("<style>*{display:none!important}</style><base href='http://x.example/'>")
    assert renderer.render(PAGE) == before


def test_no_markup_at_all(renderer: Renderer) -> None:
    assert renderer.render("").blocks == ()
    assert [each.text for each in renderer.render("<div><b>open").blocks] == ["open"]
