"""Serves ColBench's pages until SIGTERM, as `python -m` of this module."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from functools import partial

from agentc.runtime.browser.process import NoBrowserError
from agentc_backends.environments.colbench.dialogue import checked_text, served_splits
from agentc_backends.environments.colbench.frontend.environment import (
    FrontendEnvironment,
    FrontendShared,
)
from agentc_backends.environments.colbench.frontend.human import (
    PROMPT,
    ModelPageHuman,
    PageHuman,
    PageWords,
    ScriptedPageHuman,
)
from agentc_backends.environments.colbench.frontend.invented import InventedPage, invent
from agentc_backends.environments.colbench.frontend.pages import (
    TAILWIND_SHA256,
    PageTask,
    digest,
    read_pages,
)
from agentc_backends.environments.colbench.frontend.settings import FrontendSettings
from agentc_backends.environments.colbench.frontend.studio import PageStudio, UnseenReferenceError
from agentc_backends.environments.server.model_services import EncoderService, ModelService
from agentc_backends.environments.server.program import Opener, program, spec_content

_REFUSALS = (OSError, NoBrowserError, UnseenReferenceError)


def open_world(settings: FrontendSettings) -> Opener:
    """Raises ValueError and what `_REFUSALS` names: nobody is judged by pages that do not show."""
    invented = invent(settings) if settings.is_invented else {}
    splits = _splits(settings, invented)
    encoder = EncoderService("scorer") if settings.similarity == "clip" else None
    studio = PageStudio(settings, _tailwind(settings), encoder)
    studio.facts()
    studio.check_ceiling([task for tasks in splits.values() for task in tasks])
    world = FrontendShared(settings, splits, invented, studio, _human(settings))
    return partial(FrontendEnvironment, world)


def _human(settings: FrontendSettings) -> PageHuman:
    if settings.human == "scripted":
        return ScriptedPageHuman()
    return ModelPageHuman(
        ModelService("simulator"),
        temperature=settings.human_temperature,
        max_tokens=settings.human_max_tokens,
        most_pixels=settings.human_pixels,
        words=PageWords(
            checked_text(settings.human_prompt, settings.human_prompt_sha256, PROMPT),
            *settings.human_labels,
        ),
        seeded=settings.human_seeding == "text",
    )


def _splits(
    settings: FrontendSettings, invented: Mapping[str, InventedPage]
) -> dict[str, tuple[PageTask, ...]]:
    own: Sequence[PageTask] | None = None
    if settings.is_invented:
        own = tuple(each.task for each in invented.values())
    return served_splits(settings, own, read_pages, digest)


def _tailwind(settings: FrontendSettings) -> bytes | None:
    if settings.stylesheet is None:
        return None
    content = spec_content(settings.stylesheet)
    if content is None or hashlib.sha256(content).hexdigest() != TAILWIND_SHA256:
        raise ValueError(f"{settings.stylesheet} is not Tailwind 2.2.19's tailwind.min.css")
    return content


opener, main = program(FrontendSettings, open_world, refusals=_REFUSALS)

if __name__ == "__main__":
    sys.exit(main())
