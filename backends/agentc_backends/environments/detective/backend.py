"""Declares `env.detective`: a Z-machine game behind AgentGym's protocol, served by `job_serve.py`.

The game's file is the user's; its digest, never its place, enters keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentc.backend_api import (
    DataSet,
    DataSource,
    EnvironmentBackend,
    LeaseDraft,
    OptionView,
)
from agentc.kinds.field import Json
from agentc.kinds.settings import fields_of
from agentc_backends.environments.declaration import effective, environment_lease
from agentc_backends.environments.detective.settings import (
    DEFAULT_FILE,
    DETECTIVE,
    MAX_STEPS,
    WHERE,
    DetectiveSettings,
    Story,
    digest_of,
    story_of,
)
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.software import JERICHO

GAME = DataSet(
    name="detective",
    doc="Detective, release 1, serial number 000715: the game that ArCHer's experiments play.",
    licence="none is stated; (c) Matt Barringer, port (c) Stuart Moore",
    sources=(
        DataSource(
            name=DEFAULT_FILE,
            url="https://raw.githubusercontent.com/YifeiZhou02/ArCHer/"
            "7c771a7610cb34e54ba53d69d1fb7337103e5648/dataset/detective.z5",
            size=108_032,
        ),
    ),
    unpacked_size=108_032,
    program=("-m", "agentc_backends.environments.server.job_copy", DEFAULT_FILE),
    contents={DEFAULT_FILE: DETECTIVE.sha256},
    use=f"`game: {{path}}/{DEFAULT_FILE}` under an environment with `backend: detective`",
)


def _lease(options: OptionView) -> LeaseDraft:
    left: dict[str, str] = {}
    story = _story(options, left)
    settings = effective(options, DetectiveSettings, left, sha256=story.sha256)
    identity = options.identity()
    # Keys follow what the file holds, wherever it lies.
    identity.pop("game", None)
    identity["game_sha256"] = story.sha256
    return environment_lease(
        BACKEND,
        options,
        settings,
        identity=identity,
        expect={
            "game": {"name": story.name, "sha256": story.sha256},
            "options": rules_of(settings),
        },
        ready_timeout_s=120.0,
    )


def _story(options: OptionView, left: dict[str, str]) -> Story:
    """Detective where no file is named: a spec is checked and planned without it. Adds to `left`
    why the points are not read."""
    file = options.get("game")
    if not isinstance(file, str):
        left["points"] = "no `game` is named, so it is Detective, whose points are known"
        return DETECTIVE
    content = options.file(file)
    if content is None:
        options.refuse("game", f"there is no game {file} that can be read", fix=WHERE)
        return DETECTIVE
    digest = digest_of(content)
    known = story_of(digest, None)
    if known is not None:
        left["points"] = f"{file} is a game whose points are known"
        return known
    points = options.get("points")
    story = story_of(digest, points if isinstance(points, int) else None)
    if story is None:
        options.refuse(
            "game",
            f"{file} is no game that is known here (SHA-256 {digest})",
            fix="give `points`, what can be gained in it; or, for Detective: " + WHERE,
        )
    return story or DETECTIVE


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    """The declaration under a spec's settings, which may still be wrong in any way."""
    points, steps = given.get("points"), given.get("max_steps")
    declared = BACKEND
    if isinstance(points, int) and points > 0:
        declared = replace(
            declared,
            reward_range=(-float(points), float(points)),
            success_at=float(points),
            capabilities=BACKEND.capabilities - {"expert"},
        )
    if isinstance(steps, int) and steps > 0:
        declared = replace(declared, max_turns=steps)
    return declared


BACKEND = EnvironmentBackend(
    id="env.detective",
    # 2: an empty action under `actions: free` never reached the game
    version=3,
    doc="Detective, the text adventure of ArCHer's experiments (or another Z-machine game), on "
    "jericho's interpreter. One task, so training and evaluation are on the same one; needs the "
    "game's file.",
    software=JERICHO,
    lease=_lease,
    fields=fields_of(DetectiveSettings),
    splits=("all",),
    reward_range=(0.0, float(DETECTIVE.points)),
    success_at=float(DETECTIVE.points),
    max_turns=MAX_STEPS,
    expected_tasks=lambda _: {"all": (1.0, 1.0)},
    configured=_configured,
    data_sets=(GAME,),
    capabilities=frozenset({"expert", "fork", "snapshot"}),
)
