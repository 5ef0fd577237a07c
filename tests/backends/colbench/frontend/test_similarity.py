"""Likeness of pages: the parts by themselves, and the whole over changes that people see."""

from __future__ import annotations

import pytest
from tests.backends.colbench.frontend.conftest import WANTED

from agentc.runtime.browser.render import TextBlock
from agentc_backends.environments.colbench.frontend.similarity import (
    PARTS,
    composite,
    mean,
    small_picture,
    text_likeness,
)
from agentc_backends.environments.colbench.frontend.studio import PageStudio

BLANK = "<html><body></body></html>"
CHANGED = {
    # What is changed, and the parts that have to notice.
    "colours": (WANTED.replace("blue", "red"), {"ssim", "histogram"}),
    "text": (WANTED.replace("Open daily", "Closed for good, sorry"), {"ssim", "blocks"}),
    "columns": (WANTED.replace('class="two"', 'class="one"'), {"ssim", "phash", "blocks"}),
    "blank": (BLANK, {"ssim", "histogram", "phash", "blocks"}),
}


def _block(text: str, x: float = 0, y: float = 0, **others: tuple[int, int, int]) -> TextBlock:
    colours = {"color": (0, 0, 0), "background": (255, 255, 255), **others}
    return TextBlock(text, x, y, 100, 20, size=16.0, **colours)


def test_a_page_is_like_itself(studio: PageStudio) -> None:
    page, again = studio.render(WANTED), studio.render(WANTED)
    assert composite(page, again) == dict.fromkeys(PARTS, 1.0)


@pytest.mark.parametrize("name", CHANGED)
def test_what_changed_is_noticed_and_the_more_the_less_alike(studio: PageStudio, name: str) -> None:
    html, noticed = CHANGED[name]
    wanted, made, blank = (studio.render(each) for each in (WANTED, html, BLANK))
    parts = composite(wanted, made)
    assert set(parts) == set(PARTS)
    assert all(0.0 <= part <= 1.0 for part in parts.values())
    assert {part for part, value in parts.items() if value < 0.999} >= noticed
    assert mean(composite(wanted, blank)) <= mean(parts) < 1.0
    assert mean(composite(wanted, blank)) < 0.6
    assert composite(made, wanted) == pytest.approx(parts)


def test_likeness_of_texts_by_hand() -> None:
    one, two = _block("Oak Bakery"), _block("Opening hours", y=100)
    assert text_likeness([one, two], [one, two]) == 1.0
    assert text_likeness([one], [two]) == text_likeness([one], []) == 0.0
    assert text_likeness([], []) == 1.0
    # Half of all area is in both pages: (2 * 2000) / (4000 + 2000), and the rest is equal.
    assert text_likeness([one, two], [one]) == pytest.approx((2 / 3 + 3) / 4)
    # 360 pixels of 720 down: half of the place.
    assert text_likeness([one], [one._replace(y=360.0)]) == pytest.approx(3.5 / 4)
    # Black where white is wanted: nothing of the colour.
    assert text_likeness([one], [one._replace(color=(255, 255, 255))]) == pytest.approx(3 / 4)
    # 9 pairs of letters of 11, with those at both ends: 2 * 9 / 22.
    alike = text_likeness([one], [_block("Oak Bakers")])
    assert alike == pytest.approx((1 + 9 / 11 + 1 + 1) / 4)


def test_a_text_that_stands_twice_is_matched_once() -> None:
    one = _block("More")
    assert text_likeness([one], [one, one]) == pytest.approx((4000 / 6000 + 3) / 4)


def test_a_page_of_thousands_of_texts_takes_no_time_of_thousands_squared() -> None:
    many = [_block(f"{number} " * 100) for number in range(5000)]
    assert text_likeness(many, many) == 1.0
    assert text_likeness(many, [_block("1 2 " * number) for number in range(1, 5000)]) < 1.0


def test_small_pictures(studio: PageStudio) -> None:
    tall = studio.render("<div style='height:5000px'>x</div>")
    picture = small_picture(tall.png)
    assert picture.startswith(b"\xff\xd8")
    assert len(picture) < 20_000
    assert picture == small_picture(tall.png)
