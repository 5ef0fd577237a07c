"""Declares `env.alfworld`: ALFWorld behind the AgentGym protocol, served by `job_serve.py`.

Splits and files of games are read here, so that keys follow what the files hold. The hashes of the
data set are of all 4,027 solvable games as `job_pack.py` writes them; the archive's size is the one
that its users report; its own hash is not checked, the games in it are."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from agentc.backend_api import DataSet, DataSource, EnvironmentBackend, LeaseDraft, OptionView
from agentc.kinds.field import Json
from agentc.kinds.settings import fields_of
from agentc_backends.environments.alfworld.settings import (
    DEFAULT,
    INVENTED,
    RELEASED,
    ROOMS,
    SUFFIXES,
    TASKS,
    AlfworldSettings,
    Split,
    invented_size,
    read_splits,
)
from agentc_backends.environments.declaration import effective, environment_lease
from agentc_backends.environments.published_data import (
    AGENTGYM_ALFWORLD,
    ETO_TRAJECTORIES,
    fetch_command,
)
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.environments.server.splits import SplitError
from agentc_backends.software import LIGHT

GAMES = DataSet(
    name="alfworld",
    doc="ALFWorld's 4,027 games: train 3553, valid_train 200, valid_seen 140, valid_unseen 134.",
    licence="MIT (ALFWorld; made from ALFRED, MIT)",
    sources=(
        DataSource(
            name="json_2.1.3_tw-pddl.zip",
            url="https://github.com/alfworld/alfworld/releases/download/0.4.2/"
            "json_2.1.3_tw-pddl.zip",
            size=36_507_267,
        ),
    ),
    unpacked_size=350_000_000,
    program=("-m", "agentc_backends.environments.alfworld.job_pack"),
    contents={
        "train.jsonl": "b490ab5e2be373705abfb3dc7f0a160245c8301ad142a1dc77abb9351193502f",
        "valid_train.jsonl": "4a821eab9382645a3cb1a5fd35c562a99969feb0b624a89c2519836431127119",
        "valid_seen.jsonl": "492471ce8b908f88401b43cdfbf9f9ad79eefac2f2fdff5ca4021f7593544432",
        "valid_unseen.jsonl": "db935157d1f493cc5b0eef48798934c0952305f94cba6dc4e56dec9f55ca3e5a",
    },
    use="`games: {path}` under an environment with `backend: alfworld`",
)


_KINDS: Mapping[str, tuple[str, ...]] = {"invented_rooms": ROOMS, "invented_tasks": TASKS}


def _lease(options: OptionView) -> LeaseDraft:
    settings = effective(options, AlfworldSettings)
    try:
        splits = read_splits(settings.splits, options.file)
    except SplitError as error:
        options.refuse("splits", str(error))
        splits = {}
    files: dict[str, Json] = {}
    if settings.games != INVENTED:
        files = _files(options, settings.games, splits)
    else:
        _check_invented(options, settings)
    lines: dict[str, Json] = {name: split.line() for name, split in splits.items()}
    identity = {**options.identity(), "splits": lines}
    # Keys follow what the files hold, wherever they lie.
    identity.pop("games", None)
    if files:
        identity["files"] = files
    return environment_lease(
        BACKEND,
        options,
        settings,
        identity=identity,
        expect={"options": rules_of(settings), "splits": lines, "files": files},
        inside=True,
        ready_timeout_s=120.0,
    )


def _check_invented(options: OptionView, settings: AlfworldSettings) -> None:
    """Refuses rooms and kinds of task that are not known or do not go together."""
    # Here, so that other specs do not wait for it.
    from agentc_backends.environments.alfworld.invented import playable

    chosen: dict[str, tuple[str, ...]] = {}
    for name, known in _KINDS.items():
        named: tuple[str, ...] = getattr(settings, name)
        for each in named:
            if each not in known:
                near = difflib.get_close_matches(each, known, 1)
                options.refuse(
                    name,
                    f"no games are invented for {each!r}",
                    fix=f"did you mean {near[0]}?" if near else "choose from " + ", ".join(known),
                )
        chosen[name] = tuple(each for each in named if each in known) or known
    if not playable(chosen["invented_rooms"], chosen["invented_tasks"]):
        options.refuse(
            "invented_tasks",
            "none of these tasks can be done in any of `invented_rooms`",
            fix="add `put`, which can be done in all of them",
        )


def _files(options: OptionView, folder: str, splits: Mapping[str, Split]) -> dict[str, Json]:
    """Digest of each part's file."""
    digests: dict[str, Json] = {}
    for part in dict.fromkeys(split.part for split in splits.values()):
        contents = (options.file(f"{folder}/{part}{suffix}") for suffix in SUFFIXES)
        content = next((each for each in contents if each is not None), None)
        if content is None:
            options.refuse(
                "games",
                f"there is no {part}{SUFFIXES[0]} in {folder} that can be read",
                fix=f"{fetch_command(GAMES, PurePosixPath(folder))} gets ALFWorld's games, or use "
                f"`games: {INVENTED}`",
            )
        else:
            digests[part] = hashlib.sha256(content).hexdigest()
    return digests


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    """The declaration under a spec's settings, which may still be wrong in any way."""
    splits = given.get("splits")
    return replace(BACKEND, splits=tuple(splits if isinstance(splits, dict) else DEFAULT))


def _expected_tasks(given: Mapping[str, Json]) -> Mapping[str, tuple[float, float]]:
    """Exact for whole parts of invented or released games; a list may be shortened."""
    splits, count = given.get("splits"), given.get("invented_games")
    expected: dict[str, tuple[float, float]] = {}
    if not isinstance(splits, dict):
        splits = {name: split["part"] for name, split in DEFAULT.items()}
    for name, line in splits.items():
        words = str(line).split()
        exact = "except" not in words and "missing" not in words
        if words[1:2] == ["of"]:
            expected[name] = (float(words[2]), 1.0 if exact else 1.2)
        elif "files" in given:
            expected[name] = (float(RELEASED[words[0]]), 1.0 if exact else 2.0)
        else:
            trained = count if isinstance(count, int) else 500
            expected[name] = (float(invented_size(words[0], trained)), 1.0 if exact else 2.0)
    return expected


BACKEND = EnvironmentBackend(
    id="env.alfworld",
    version=3,
    doc="ALFWorld: household tasks in a text world, as an interpreter of its rules and texts in "
    "plain Python. By default `dev` are seen rooms and `test` unseen ones.",
    software=LIGHT,
    lease=_lease,
    fields=fields_of(AlfworldSettings),
    splits=tuple(DEFAULT),
    reward_range=(0.0, 1.0),
    success_at=1.0,
    max_turns=40,
    expected_tasks=_expected_tasks,
    configured=_configured,
    capabilities=frozenset({"expert", "fork", "snapshot"}),
    data_sets=(GAMES, ETO_TRAJECTORIES, AGENTGYM_ALFWORLD),
)
