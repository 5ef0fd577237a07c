"""Declares `env.alfworld`: ALFWorld behind the AgentGym protocol, served by `job_serve.py`.

Splits and files of games are read here, so that keys follow what the files hold.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace

from agentc.backend_api import EnvironmentBackend, LeaseDraft, OptionView
from agentc.kinds.field import (
    Field,
    Json,
    boolean,
    choice,
    integer,
    seed,
    string,
    strings,
)
from agentc_backends.alfworld.released import GAMES
from agentc_backends.alfworld.sizes import (
    INVENTED,
    RELEASED,
    ROOMS,
    SUFFIXES,
    TASKS,
    invented_size,
)
from agentc_backends.alfworld.splits import DEFAULT, Split, SplitError, read_splits
from agentc_backends.software import LIGHT

FIELDS: tuple[Field, ...] = (
    string("games", "`invented`: games of agentc's own, drawn from a seed; else a folder with "
           "ALFWorld's games, packed (`train.jsonl.xz`, `valid_seen.jsonl.xz`, ...; the README "
           "says how to pack them).", INVENTED),
    Field(name="splits", schema={"type": "object"}, default=dict(DEFAULT),
          doc="Games of each split: `{part: train}` (or valid_train, valid_seen, valid_unseen), "
          "with `list: file` only those that a file names (each `trial_...` in it counts), with "
          "`except: [other split]`, and `missing: drop` for listed games that the folder lacks. "
          "Splits that share a game are refused."),
    choice("wording", "`put X in/on Y`, as ALFWorld spoke until release 0.3 and in most papers, or "
           "`move X to Y`, as since 0.4.", ("put", "move"), "put"),
    boolean("shorten_arrivals", "Leave the sentence about arriving somewhere out of observations.",
            True),
    choice("expert", "One that looks for things in likely places and uses what it saw only, or the "
           "game's own walkthrough, which knows where everything is.",
           ("explorer", "walkthrough"), "explorer"),
    boolean("end_on_refusal", "End an episode at the first action of which nothing happens; as "
            "released, it costs a turn.", False),
    integer("invented_games", "How many games to invent for training.", 500, minimum=1,
            maximum=20000),
    seed("invented_seed", "Seed of the invented games."),
    strings("invented_rooms", "Rooms to invent: " + ", ".join(ROOMS) + "; empty: all. Bathrooms "
            "have the fewest things and places.", ()),
    strings("invented_tasks", "Kinds of task to invent: " + ", ".join(TASKS) + "; empty: all. The "
            "shortest is `put`, the longest `two`.", ()),
)  # fmt: skip

_KINDS: Mapping[str, tuple[str, ...]] = {"invented_rooms": ROOMS, "invented_tasks": TASKS}


def _lease(options: OptionView) -> LeaseDraft:
    games, wording, expert = (options.text(name) for name in ("games", "wording", "expert"))
    shortens = options.flag("shorten_arrivals")
    written = options.get("splits")
    assert isinstance(written, dict)
    try:
        splits = read_splits(written, options.file)
    except SplitError as error:
        options.refuse("splits", str(error))
        splits = {}
    program = ["-m", "agentc_backends.alfworld.job_serve", "--port", "0"]
    program += ["--ready-file", "{ready_file}", "--games", games]
    program += ["--splits", json.dumps(written, separators=(",", ":"))]
    program += ["--wording", wording, "--expert", expert]
    if not shortens:
        program.append("--whole-arrivals")
    ends = options.flag("end_on_refusal")
    if ends:
        program.append("--end-on-refusal")
    files: dict[str, Json] = {}
    if games == INVENTED:
        program += ["--invented-games", str(options.integer("invented_games"))]
        program += ["--invented-seed", str(options.integer("invented_seed"))]
        program += _difficulty(options)
    else:
        for name in ("invented_games", "invented_seed", *_KINDS):
            options.leave(name, "`games` names a folder, so none are invented")
        files = _files(options, games, splits)
    rules: dict[str, Json] = {
        "wording": wording,
        "shorten_arrivals": shortens,
        "expert": expert,
        "end_on_refusal": ends,
    }
    identity = options.identity()
    # Keys follow what the files hold, wherever they lie.
    identity.pop("games", None)
    lines: dict[str, Json] = {name: split.line() for name, split in splits.items()}
    identity["splits"] = lines
    if files:
        identity["files"] = files
    return LeaseDraft(
        role="environment",
        backend=BACKEND.id,
        version=BACKEND.version,
        software=LIGHT,
        program=tuple(program),
        identity=identity,
        port="chosen",
        probe="/health",
        identity_check="environment",
        inside=True,
        expect={"name": "alfworld", "options": rules, "splits": lines, "files": files},
        ready_timeout_s=120.0,
    )


def _difficulty(options: OptionView) -> list[str]:
    """The words of the program for rooms and kinds of task, where a spec names some."""
    # Here, so that other specs do not wait for it.
    from agentc_backends.alfworld.invented import playable

    words: list[str] = []
    chosen: dict[str, tuple[str, ...]] = {}
    for name, known in _KINDS.items():
        given = options.get(name)
        assert isinstance(given, list)
        named = [str(each) for each in given]
        for each in named:
            if each not in known:
                near = difflib.get_close_matches(each, known, 1)
                options.refuse(
                    name,
                    f"no games are invented for {each!r}",
                    fix=f"did you mean {near[0]}?" if near else "choose from " + ", ".join(known),
                )
        chosen[name] = tuple(each for each in named if each in known) or known
        if named:
            words += ["--" + name.replace("_", "-"), *named]
    if not playable(chosen["invented_rooms"], chosen["invented_tasks"]):
        options.refuse(
            "invented_tasks",
            "none of these tasks can be done in any of `invented_rooms`",
            fix="add `put`, which can be done in all of them",
        )
    return words


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
                fix=f"`agentc data fetch {GAMES.name} --to DIR` gets ALFWorld's games, or use "
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
    fields=FIELDS,
    splits=tuple(DEFAULT),
    reward_range=(0.0, 1.0),
    success_at=1.0,
    max_turns=40,
    expected_tasks=_expected_tasks,
    configured=_configured,
    capabilities=frozenset({"expert", "fork", "snapshot"}),
    data_sets=(GAMES,),
)
