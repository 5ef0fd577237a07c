"""The human who looks at the agent's page: a script that names the largest difference, or a model
that sees both pictures."""

from __future__ import annotations

import base64
import hashlib
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from PIL import Image

from agentc.runtime.browser.render import WIDTH, WINDOW_HEIGHT, Rendered, TextBlock
from agentc_backends.environments.colbench.frontend.pages import PageTask
from agentc_backends.environments.colbench.frontend.similarity import considered, match_blocks
from agentc_backends.environments.colbench.settings import NO_CODE
from agentc_backends.environments.server.model_services import ModelService, reply_text

NO_PAGE = "I see no page in your reply."
NOT_SHOWN = "Your page does not show."
PROMPT = """\
You want a web page and work with a designer on it. You see two pictures: the page as the designer \
has it now, and the page that you want, which the designer cannot see. Say in one or two short \
sentences what differs most and how it should look, so exactly that the designer can change it. \
Write no code."""
MADE, WANTED = "The page as the designer has it now:", "The page that you want:"
NOTHING_MADE = "The designer's last reply shows no page."


@dataclass(frozen=True, slots=True)
class PageWords:
    """The text around the two pictures that a model receives. `no_page` replaces the first picture
    and its label where the agent's last reply has no page, or none that shows."""

    prompt: str = PROMPT
    made: str = MADE
    wanted: str = WANTED
    no_page: str = NOTHING_MADE


class PageHuman(Protocol):
    """Called from several threads at a time."""

    def reply(
        self, task: PageTask, round_: int, wanted: Rendered, made: Rendered | None, *, again: bool
    ) -> str:
        """What it says to the page of the agent's last reply; None: that has none. `again`: what it
        said first held code. Raises EnvironmentFailure."""


class ScriptedPageHuman:
    """Sees texts, places and colours."""

    def reply(
        self, task: PageTask, round_: int, wanted: Rendered, made: Rendered | None, *, again: bool
    ) -> str:
        del task, round_, again
        if made is None:
            return NO_PAGE
        return largest_difference(wanted.blocks, made.blocks) if made.png else NOT_SHOWN


class ModelPageHuman:
    """Asks a chat model that sees. The seed of a request, where one is sent, follows from the task,
    the round and the picture, so that a fork hears the same."""

    def __init__(
        self,
        model: ModelService,
        *,
        temperature: float,
        max_tokens: int,
        words: PageWords = PageWords(),
        most_pixels: int = 4_000_000,
        seeded: bool = True,
    ) -> None:
        self._model, self._words, self._most_pixels = model, words, most_pixels
        self._seeded = seeded
        self._temperature, self._max_tokens = temperature, max_tokens

    def reply(
        self, task: PageTask, round_: int, wanted: Rendered, made: Rendered | None, *, again: bool
    ) -> str:
        shown = made.png if made is not None else b""
        pictures = (within(wanted.png, self._most_pixels), within(shown, self._most_pixels))
        told = self._model.chat(
            [{"role": "user", "content": page_parts(self._words, *pictures, again=again)}],
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            seed=_seed(task.id, round_, again, shown) if self._seeded else None,
            affinity=task.id,
        )
        return reply_text(told)


def page_parts(
    words: PageWords, wanted: bytes, shown: bytes, *, again: bool = False
) -> Sequence[dict[str, Any]]:
    """The content of a message in OpenAI's form: pictures, each behind its label."""
    prompt = f"{words.prompt}\n{NO_CODE}" if again else words.prompt
    made = [_text(words.made), _picture(shown)] if shown else [_text(words.no_page)]
    return [_text(prompt), *made, _text(words.wanted), _picture(wanted)]


def within(png: bytes, most_pixels: int) -> bytes:
    """The picture itself, or scaled down to so many pixels."""
    if not png:
        return png
    picture = Image.open(io.BytesIO(png))
    pixels = picture.width * picture.height
    if pixels <= most_pixels:
        return png
    share = math.sqrt(most_pixels / pixels)
    size = (max(1, int(picture.width * share)), max(1, int(picture.height * share)))
    stream = io.BytesIO()
    picture.convert("RGB").resize(size).save(stream, "PNG")
    return stream.getvalue()


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _picture(png: bytes) -> dict[str, Any]:
    url = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def _seed(task: str, round_: int, again: bool, shown: bytes) -> int:
    """Of 31 bits, as servers take them."""
    whole = f"{task} {round_} {again} ".encode() + shown
    return int(hashlib.sha256(whole).hexdigest()[:8], 16) >> 1


# The script compares the texts of both pages: colours of and behind texts, sizes, places, texts
# that are missing or superfluous. Its sentence says what is wanted, without words of HTML.

SAME = "It looks as I want it."
_SHOWN = 80
_FAR, _LARGER, _TINT = 0.04, 0.12, 24
"""From when on a place, a size and a colour differ: shares of the window and of the size, and
levels of 255."""


def largest_difference(wanted: Sequence[TextBlock], made: Sequence[TextBlock]) -> str:
    """The sentence with the largest weight, of equal ones the first."""
    found = [*_differences(considered(wanted), considered(made))]
    return max(found, key=lambda each: each[0])[1] if found else SAME


def _differences(
    wanted: Sequence[TextBlock], made: Sequence[TextBlock]
) -> Iterator[tuple[float, str]]:
    pairs = match_blocks(wanted, made)
    shown, used = {pair.wanted for pair in pairs}, {pair.made for pair in pairs}
    for position, block in enumerate(wanted):
        if position not in shown:
            yield 3.0, f"I miss {_quoted(block)} {_where(block)}."
    for position, block in enumerate(made):
        if position not in used:
            yield 2.5, f"I do not want {_quoted(block)}."
    for pair in pairs:
        yield from _between(wanted[pair.wanted], made[pair.made])


def _between(one: TextBlock, other: TextBlock) -> Iterator[tuple[float, str]]:
    name = _quoted(one)
    for what, colour, shown in (
        (f"Behind {name} the colour should be", one.background, other.background),
        (f"{name} should be written in", one.color, other.color),
    ):
        tint = max(abs(a - b) for a, b in zip(colour, shown, strict=True))
        if tint > _TINT:
            yield 1.0 + tint / 255, f"{what} {_colour_name(colour)}."
    if abs(one.size - other.size) > _LARGER * one.size:
        word = "larger" if one.size > other.size else "smaller"
        part = min(1.0, abs(one.size - other.size) / one.size)
        yield 1.0 + part, f"{name} should be {word}: {one.size:g} pixels high."
    across = (one.x + one.width / 2 - other.x - other.width / 2) / WIDTH
    down = (one.y + one.height / 2 - other.y - other.height / 2) / WINDOW_HEIGHT
    if max(abs(across), abs(down)) > _FAR:
        if abs(across) >= abs(down):
            word = "right" if across > 0 else "left"
        else:
            word = "down" if down > 0 else "up"
        part = min(1.0, max(abs(across), abs(down)))
        yield 1.0 + part, f"{name} should be further {word}, {_where(one)}."
    if one.text != other.text:
        yield 1.5, f"Instead of {_quoted(other)} it should say {name}."


def _quoted(block: TextBlock) -> str:
    text = block.text if len(block.text) <= _SHOWN else block.text[: _SHOWN - 3] + "..."
    return f'"{text}"'


def _where(block: TextBlock) -> str:
    middle = (block.x + block.width / 2) / WIDTH
    across = (
        "at the left" if middle < 0.36 else "at the right" if middle > 0.64 else "in the middle"
    )
    middle = (block.y + block.height / 2) / WINDOW_HEIGHT
    down = "at the top" if middle < 0.2 else "below the window" if middle > 1 else "further down"
    return f"{across}, {down}"


def _colour_name(colour: tuple[int, int, int]) -> str:
    """A word and the exact number."""
    red, green, blue = colour
    exact = f"#{red:02x}{green:02x}{blue:02x}"
    if max(colour) - min(colour) < 25:
        level = sum(colour) / 3
        return f"{'black' if level < 50 else 'white' if level > 245 else 'grey'} ({exact})"
    word = ("red", "green", "blue")[max(range(3), key=lambda part: colour[part])]
    return f"{word} ({exact})"
