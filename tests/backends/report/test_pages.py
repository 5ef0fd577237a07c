"""The report on pages that models wrote: the made beside the wanted, as pictures alone."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.backends.report.test_report import HOSTILE, Page, collected

from agentc_backends.results.report.page import render_page


def test_pages_are_shown_beside_each_other_and_only_as_pictures(
    example_store: Any, experiment: Any
) -> None:
    picture = base64.b64encode(b"\xff\xd8\xff a picture").decode()
    path = example_store.inputs["eto.1.explore"][0] / "trajectories.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    pictures = [
        {"made": picture, "wanted": picture},
        {"made": f'{picture}" onerror="alert(1)', "wanted": picture},
        {"made": base64.b64encode(b"<svg onload=alert(1)>").decode(), "wanted": None},
    ]
    for row, shown in zip(rows, pictures, strict=False):
        row["report"] = {"pictures": shown, "parts": {HOSTILE: 0.5, "ssim": "x"}, "render": HOSTILE}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    html = render_page(collected(example_store, experiment), experiment, trajectories=5)
    page = Page(html)
    images = [attrs for tag, attrs in page.tags if tag == "img"]
    assert [image["src"] for image in images] == [f"data:image/jpeg;base64,{picture}"] * 3
    assert all("onerror" not in image for image in images)
    assert page.text.count("no page") == 3
    assert "pages" in page.ids()
    assert "img-src data:" in html


def test_without_pages_no_picture_may_be_loaded(example_store: Any, experiment: Any) -> None:
    html = render_page(collected(example_store, experiment), experiment, trajectories=5)
    assert "img-src" not in html
    assert "pages" not in Page(html).ids()
