"""The cosine of two pages' features: arithmetic, what is asked of an encoder, what is seen of none.

The encoder here is three sums of pixels; the real one: `tests/backends/encoder`.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator

import pytest
from PIL import Image
from tests.backends.colbench.frontend.conftest import TASK, WANTED

from agentc_backends.environments.colbench.frontend.environment import (
    FrontendEnvironment,
    FrontendShared,
)
from agentc_backends.environments.colbench.frontend.human import ScriptedPageHuman
from agentc_backends.environments.colbench.frontend.settings import FrontendSettings
from agentc_backends.environments.colbench.frontend.similarity import (
    PictureCosine,
    black_square,
    cosine,
)
from agentc_backends.environments.colbench.frontend.studio import PageStudio
from agentc_backends.environments.server.environment import EnvironmentFailure


class Sums:
    """Mean colours, and one number that all pictures share."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.fails = False

    def features(self, picture: bytes) -> tuple[float, ...]:
        if self.fails:
            raise EnvironmentFailure("it is gone")
        self.asked.append(picture)
        small = Image.open(io.BytesIO(picture)).convert("RGB").resize((1, 1))
        return (*map(float, small.getpixel((0, 0))), 50.0)


@pytest.fixture
def encoder() -> Sums:
    return Sums()


@pytest.fixture
def scored(encoder: Sums) -> Iterator[PageStudio]:
    yield from _studio(encoder, "zero")


@pytest.fixture
def scored_black(encoder: Sums) -> Iterator[PageStudio]:
    yield from _studio(encoder, "black")


def _studio(encoder: Sums, unseen: str) -> Iterator[PageStudio]:
    settings = FrontendSettings(page_seconds=3.0, browsers=1, unseen=unseen)  # type: ignore[arg-type]
    made = PageStudio(settings, None, encoder)
    yield made
    made.close()


def test_the_arithmetic() -> None:
    assert cosine([0.1, 0.2, 0.7], [0.1, 0.2, 0.7]) == 1.0
    assert cosine([1, 0], [1, 1]) == pytest.approx(math.sqrt(0.5))
    assert cosine([1, 0], [0, 3]) == cosine([1, 0], [-1, 0]) == cosine([0, 0], [1, 0]) == 0.0
    assert cosine([2e-3, 1e-3], [4e-3, 2e-3]) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="zip"):
        cosine([1.0], [1.0, 2.0])


def test_the_wanted_page_is_looked_at_once(encoder: Sums) -> None:
    found = PictureCosine(encoder)
    black, white = black_square(), io.BytesIO()
    Image.new("RGB", (4, 4), "white").save(white, "PNG")
    first = found.of("a task", white.getvalue(), black)
    assert found.of("a task", white.getvalue(), black) == first < 1.0
    assert found.of("a task", white.getvalue(), white.getvalue()) == 1.0
    assert encoder.asked.count(white.getvalue()) == 2, "once as the task's, once as an answer"
    encoder.fails = True
    with pytest.raises(EnvironmentFailure):
        found.of("another", black, black)
    encoder.fails = False
    assert found.of("another", black, black) == 1.0, "a failure is not kept"


def test_what_replaces_an_answer_that_is_not_seen() -> None:
    square = Image.open(io.BytesIO(black_square()))
    assert (square.size, square.mode) == ((224, 224), "RGB")
    assert square.getextrema() == ((0, 0), (0, 0), (0, 0))


def test_pages_are_compared_by_their_features(
    studio: PageStudio, scored: PageStudio, encoder: Sums
) -> None:
    wanted, red = studio.render(WANTED), studio.render(WANTED.replace("blue", "red"))
    assert scored.compared(TASK, wanted) == ("ok", {"cosine": 1.0}, 1.0)
    verdict, parts, similarity = scored.compared(TASK, red)
    assert (verdict, parts) == ("ok", {"cosine": similarity})
    expected = cosine(encoder.features(wanted.png), encoder.features(red.png))
    assert similarity == expected < 1.0
    encoder.asked.clear()
    scored.check_ceiling([TASK])
    assert not encoder.asked, "a world that only tells of its tasks asks no encoder"


def test_an_answer_without_a_page_is_nothing_or_black(
    studio: PageStudio, scored: PageStudio, scored_black: PageStudio, encoder: Sums
) -> None:
    assert scored.compared(TASK, None) == ("no_html", {}, 0.0)
    black = cosine(encoder.features(studio.render(WANTED).png), encoder.features(black_square()))
    assert black > 0
    assert scored_black.compared(TASK, None) == ("no_html", {"cosine": black}, black)


def test_an_encoder_that_fails_voids_the_episode(scored: PageStudio, encoder: Sums) -> None:
    settings = FrontendSettings(tasks="pages.jsonl")
    world = FrontendEnvironment(
        FrontendShared(settings, {"all": (TASK,)}, {}, scored, ScriptedPageHuman())
    )
    world.reset(TASK.id)
    encoder.fails = True
    with pytest.raises(EnvironmentFailure):
        world.step(f"I WANT TO ANSWER: {WANTED}")
