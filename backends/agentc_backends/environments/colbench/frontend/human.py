"""Who looks at the agent's page: a script that names what differs most, or a model that is shown
both pictures. Neighbours: `differences.py` (the script's eyes), `../../server/asked_model.py`.
"""

from __future__ import annotations

import base64
import hashlib
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from PIL import Image

from agentc.runtime.browser.render import Rendered
from agentc_backends.environments.colbench.frontend.differences import largest_difference
from agentc_backends.environments.colbench.frontend.pages import PageTask
from agentc_backends.environments.colbench.humans.prompt import NO_CODE
from agentc_backends.environments.server.asked_model import AskedModel, words_of

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
        model: AskedModel,
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
        return words_of(told)


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
