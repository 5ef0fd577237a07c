"""A model as the human: what really goes over the wire to a server of OpenAI's API."""

from __future__ import annotations

import base64
import io
import json
import math
from typing import Any

import pytest
from PIL import Image
from tests.backends.colbench.frontend.conftest import SECRET, TASK, WANTED, OpenedPages

from agentc_backends.environments.colbench.frontend.human import (
    MADE,
    NOTHING_MADE,
    PROMPT,
    ModelPageHuman,
    PageWords,
)
from agentc_backends.environments.colbench.frontend.human import (
    WANTED as WANTED_LABEL,
)
from agentc_backends.environments.colbench.frontend.pages import page_task
from agentc_backends.environments.colbench.frontend.studio import PageStudio
from agentc_backends.environments.colbench.settings import NO_CODE
from agentc_backends.environments.server.model_services import ModelService

FIRST = "<html><body><p>mine</p></body></html>"


def _human() -> ModelPageHuman:
    return ModelPageHuman(ModelService(), temperature=0.5, max_tokens=64)


def _picture(png: bytes) -> dict[str, Any]:
    url = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def test_two_pictures_behind_their_labels(
    opened_pages: OpenedPages, studio: PageStudio, asked: list[dict[str, Any]]
) -> None:
    world = opened_pages(TASK, human=_human())
    world.reset(TASK.id)
    assert [world.step(each)[0] for each in ("Hello", FIRST, "Hello")] == ["1", "2", "3"]
    for body in asked:
        assert (body["model"], body["max_tokens"], body["temperature"]) == ("sees", 64, 0.5)
        assert [message["role"] for message in body["messages"]] == ["user"]
        assert SECRET not in json.dumps(body)
    parts = [body["messages"][0]["content"] for body in asked]
    texts = [part["text"] for part in parts[1] if part["type"] == "text"]
    assert texts == [PROMPT, MADE, WANTED_LABEL]
    wanted, made = studio.render(WANTED), studio.render(FIRST)
    assert [part for part in parts[1] if part["type"] != "text"] == [
        _picture(made.png),
        _picture(wanted.png),
    ]
    none = [{"type": "text", "text": each} for each in (PROMPT, NOTHING_MADE, WANTED_LABEL)]
    # A turn without a page shows none, whatever was shown before.
    assert parts[0] == parts[2] == [*none, _picture(wanted.png)]
    assert len({body["seed"] for body in asked}) == 3


def test_a_page_of_an_earlier_reply_counts_and_is_not_shown(
    opened_pages: OpenedPages, studio: PageStudio, asked: list[dict[str, Any]]
) -> None:
    world = opened_pages(TASK, human=_human())
    world.reset(TASK.id)
    for reply in ("Hello", FIRST, "Hello", FIRST):
        world.step(reply)
    shown = [[part["type"] for part in body["messages"][0]["content"]] for body in asked]
    assert [kinds.count("image_url") for kinds in shown] == [1, 2, 1, 2]
    report = world.step("I WANT TO ANSWER: that one")[4]["report"]
    assert (report["answer_from"], report["renders"]) == ("earlier", 1)


def test_the_request_of_the_released_code(
    opened_pages: OpenedPages, studio: PageStudio, asked: list[dict[str, Any]]
) -> None:
    """In words of a user's: what the release puts where, and no seed."""
    words = PageWords("the prompt", "the agent's", "the human's", "no picture")
    human = ModelPageHuman(
        ModelService(), temperature=0.0, max_tokens=4096, words=words, seeded=False
    )
    world = opened_pages(TASK, human=human)
    world.reset(TASK.id)
    world.step("Hello")
    world.step(FIRST)
    wanted, made = _picture(studio.render(WANTED).png), _picture(studio.render(FIRST).png)

    def body(*content: Any) -> dict[str, Any]:
        parts = [{"type": "text", "text": p} if isinstance(p, str) else p for p in content]
        return {
            "model": "sees",
            "messages": [{"role": "user", "content": parts}],
            "max_tokens": 4096,
            "temperature": 0.0,
            "top_p": 1.0,
        }

    assert asked == [
        body("the prompt", "no picture", "the human's", wanted),
        body("the prompt", "the agent's", made, "the human's", wanted),
    ]


def test_two_tall_pictures_fit_into_the_window(
    opened_pages: OpenedPages, studio: PageStudio, asked: list[dict[str, Any]]
) -> None:
    """Of 16384 tokens, beside a reply of 4096; Qwen2-VL takes one for 28 x 28 pixels."""
    tall = "<html><body style='height:9000px'><p>tall</p></body></html>"
    task = page_task("A tall page.", tall)
    world = opened_pages(task, human=_human())
    world.reset(task.id)
    world.step(tall.replace("tall<", "very tall<"))
    sizes = []
    for part in asked[0]["messages"][0]["content"]:
        if part["type"] == "image_url":
            scheme, _, data = part["image_url"]["url"].partition(",")
            assert scheme == "data:image/png;base64"
            picture = Image.open(io.BytesIO(base64.b64decode(data, validate=True)))
            sizes.append(picture.size)
    assert Image.open(io.BytesIO(studio.render(tall).png)).size == (1280, 8192)
    assert len(sizes) == 2
    tokens = sum(math.ceil(width / 28) * math.ceil(height / 28) for width, height in sizes)
    assert tokens + 4096 + 300 < 16384
    assert all(height / width == pytest.approx(8192 / 1280, rel=0.01) for width, height in sizes)
    assert all(width * height > 3_900_000 for width, height in sizes)


def test_who_says_code_is_asked_once_more(
    opened_pages: OpenedPages, asked: list[dict[str, Any]]
) -> None:
    world = opened_pages(TASK, human=_human(), guard="refuse")
    world.reset(TASK.id)
    world.step(FIRST)
    assert len(asked) == 1
    human = _human()
    made = world._world.studio.render(FIRST)
    human.reply(TASK, 0, made, made, again=True)
    assert asked[-1]["messages"][0]["content"][0]["text"] == f"{PROMPT}\n{NO_CODE}"


def test_a_fork_hears_the_same(opened_pages: OpenedPages, asked: list[dict[str, Any]]) -> None:
    world, copy = (opened_pages(TASK, human=_human()) for _ in range(2))
    world.reset(TASK.id)
    world.step(FIRST)
    copy.restore(world.snapshot())
    world.step("Hm?")
    copy.step("Hm?")
    assert asked[-1] == asked[-2]
