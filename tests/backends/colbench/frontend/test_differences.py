"""What a scripted human says of two pages' texts."""

from __future__ import annotations

import pytest

from agentc.runtime.browser.render import TextBlock
from agentc_backends.environments.colbench.frontend.human import SAME, largest_difference

TITLE = TextBlock("Oak Bakery", 540, 20, 200, 40, (0, 0, 0), (37, 99, 235), 40.0)
HOURS = TextBlock("Hours", 20, 200, 60, 20, (34, 34, 34), (229, 231, 235), 16.0)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ([TITLE, HOURS], SAME),
        ([TITLE], 'I miss "Hours" at the left, further down.'),
        ([TITLE, HOURS, HOURS._replace(text="Sale!")], 'I do not want "Sale!".'),
        (
            [TITLE._replace(background=(185, 28, 28)), HOURS],
            'Behind "Oak Bakery" the colour should be blue (#2563eb).',
        ),
        (
            [TITLE._replace(color=(255, 255, 255)), HOURS],
            '"Oak Bakery" should be written in black (#000000).',
        ),
        ([TITLE._replace(size=14.0), HOURS], '"Oak Bakery" should be larger: 40 pixels high.'),
        (
            [TITLE._replace(x=20.0), HOURS],
            '"Oak Bakery" should be further right, in the middle, at the top.',
        ),
        (
            [TITLE, HOURS._replace(y=600.0)],
            '"Hours" should be further up, at the left, further down.',
        ),
        ([TITLE._replace(text="Oak Bakers"), HOURS], 'Instead of "Oak Bakers" it should say '),
    ],
)
def test_the_one_difference_is_told(made: list[TextBlock], said: str) -> None:
    assert largest_difference([TITLE, HOURS], made).startswith(said)


def test_of_two_the_larger_one_is_told() -> None:
    made = [TITLE._replace(size=14.0), HOURS._replace(x=100.0)]
    assert "larger" in largest_difference([TITLE, HOURS], made)
    assert "I miss" in largest_difference([TITLE, HOURS], made[:1])


def test_long_texts_are_shortened() -> None:
    long = TITLE._replace(text="word " * 100)
    assert len(largest_difference([long], [])) < 150
