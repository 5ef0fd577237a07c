"""ALFWorld's settings: what a spec may write, and splits of games.

A split is a part of the games, whole or as a published list names it, disjoint by game: `{part:
train}`, `{part: train, list: file}` (every `trial_...` in the file counts, so that the lists of
ETO, AgentGym and AgentBench can be read as they are), `except: [other split]`, and `missing: drop`
for lists with games that are not available. Read while a spec is compiled."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agentc.program.settings import only_with, setting
from agentc_backends.environments.server.splits import (
    ReadFile,
    SplitError,
    check_names,
    content_of,
    excluded_splits,
)

if TYPE_CHECKING:
    from agentc_backends.environments.alfworld.games import HouseholdGame


# Parts, files, sizes and inventions that a declaration knows without opening a game.

SUFFIXES = (".jsonl.xz", ".jsonl")
"""Of a part's file."""

ROOMS = ("bathroom", "bedroom", "kitchen", "livingroom")
TASKS = ("put", "two", "clean", "heat", "cool", "look")
"""What `invented.py` invents."""

INVENTED = "invented"
"""The value of `games` that stands for games of our own."""

RELEASED: Mapping[str, int] = {
    "train": 3553,
    "valid_train": 200,
    "valid_seen": 140,
    "valid_unseen": 134,
}
PARTS = tuple(RELEASED)


def invented_size(part: str, train: int) -> int:
    """As many for testing as ALFWorld has, unless that is more than for training."""
    return train if part == "train" else min(train, RELEASED[part])


DEFAULT: Mapping[str, Any] = {
    "train": {"part": "train"},
    "dev": {"part": "valid_seen"},
    "test": {"part": "valid_unseen"},
}
_TRIAL = re.compile(r"trial_[A-Za-z0-9_]+")
_KEYS = ("part", "list", "except", "missing")
_EXPECTED = f"expected `{{part: {'|'.join(PARTS)}}}`, with `list`, `except` or `missing: drop`"


@dataclass(frozen=True, slots=True)
class Split:
    """`trials` in the list's order, or None for the whole part; `drops`: a listed game may lack."""

    part: str
    trials: tuple[str, ...] | None
    left_out: tuple[str, ...]
    drops: bool

    def line(self) -> str:
        """What enters keys: the same games give the same line."""
        words = [self.part]
        if self.trials is not None:
            digest = hashlib.sha256(" ".join(self.trials).encode()).hexdigest()[:32]
            words += ["of", str(len(self.trials)), digest]
        if self.drops:
            words.append("missing dropped")
        return " ".join([*words, *(f"except {name}" for name in self.left_out)])


def read_splits(written: Mapping[str, Any], read_file: ReadFile) -> dict[str, Split]:
    """Raises SplitError."""
    check_names(written)
    found = {name: _read(name, value, written, read_file) for name, value in written.items()}
    _check_disjoint(found)
    return found


def chosen_games(
    splits: Mapping[str, Split], parts: Mapping[str, Iterable[HouseholdGame]]
) -> dict[str, tuple[HouseholdGame, ...]]:
    """The games of each split. Raises SplitError where a listed one is not there."""
    chosen: dict[str, tuple[HouseholdGame, ...]] = {}
    for name, split in splits.items():
        games = {game.trial: game for game in parts[split.part]}
        trials = split.trials
        if trials is None:
            # A fixed order of all kinds of task, so that the first N of a split are of many kinds.
            trials = tuple(sorted(games, key=_spread))
        missing = [trial for trial in trials if trial not in games]
        if missing and not split.drops:
            raise SplitError(
                f"the split `{name}` lists {len(missing)} games that {split.part} has not, such as "
                f"{missing[0]}; write `missing: drop` to do without them"
            )
        chosen[name] = tuple(games[trial] for trial in trials if trial in games)
    whole = dict(chosen)
    for name, split in splits.items():
        out = {game.task_id for other in split.left_out for game in whole[other]}
        chosen[name] = tuple(game for game in chosen[name] if game.task_id not in out)
        if not chosen[name]:
            raise SplitError(f"the split `{name}` holds no game")
    return chosen


def _spread(trial: str) -> bytes:
    return hashlib.sha256(f"alfworld/1/{trial}".encode()).digest()


def _read(name: str, value: Any, known: Container[str], read_file: ReadFile) -> Split:
    match value:
        case {"part": str(part), **rest} if part in PARTS and set(rest) <= set(_KEYS):
            pass
        case _:
            raise SplitError(f"the split `{name}` is {json.dumps(value)[:80]}; {_EXPECTED}")
    if rest.get("missing", "drop") != "drop":
        raise SplitError(f"the split `{name}`: `missing` can only be `drop`")
    left_out = excluded_splits(name, value, known)
    trials = None
    if "list" in rest:
        trials = _listed(name, str(rest["list"]), read_file)
    return Split(part, trials, left_out, "missing" in rest)


def _listed(name: str, path: str, read_file: ReadFile) -> tuple[str, ...]:
    content = content_of(name, path, read_file)
    trials = tuple(dict.fromkeys(_TRIAL.findall(content.decode("utf-8", "replace"))))
    if not trials:
        raise SplitError(f"the split `{name}`: {path} names no game (trial_...)")
    return trials


def _check_disjoint(found: Mapping[str, Split]) -> None:
    """Parts share no game with each other, so only splits of one part can."""
    names = list(found)
    for index, name in enumerate(names):
        for other in names[:index]:
            one, two = found[name], found[other]
            if one.part != two.part or other in one.left_out or name in two.left_out:
                continue
            if one.trials is None or two.trials is None:
                shared = "all" if one.trials is two.trials else "some"
            else:
                shared = str(len({*one.trials} & {*two.trials}))
            if shared != "0":
                raise SplitError(
                    f"the splits `{other}` and `{name}` share {shared} of their games: write "
                    f"`except: [{other}]` in `{name}`, or `except: [{name}]` in `{other}`"
                )


# fmt: off
_OF_INVENTED = only_with(
    "games", INVENTED, because="`games` names a folder, so none are invented")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlfworldSettings:
    # What is played shows in digests.
    games: str = setting(
        "`invented`: games of agentc's own, drawn from a seed; else a folder with ALFWorld's "
        "games, packed (`train.jsonl.xz`, `valid_seen.jsonl.xz`, ...; the README says how to pack "
        "them).", INVENTED, rule=False)
    splits: Mapping[str, Any] = setting(
        "Games of each split: `{part: train}` (or valid_train, valid_seen, valid_unseen), with "
        "`list: file` only those that a file names (each `trial_...` in it counts), with `except: "
        "[other split]`, and `missing: drop` for listed games that the folder lacks. Splits that "
        "share a game are refused.", DEFAULT, rule=False)
    wording: Literal["put", "move"] = setting(
        "`put X in/on Y`, as ALFWorld spoke until release 0.3 and in most papers, or `move X to "
        "Y`, as since 0.4.", "put")
    shorten_arrivals: bool = setting(
        "Leave the sentence about arriving somewhere out of observations.", True)
    expert: Literal["explorer", "walkthrough"] = setting(
        "One that looks for things in likely places and uses what it saw only, or the game's own "
        "walkthrough, which knows where everything is.", "explorer")
    end_on_refusal: bool = setting(
        "End an episode at the first action of which nothing happens; as released, it costs a "
        "turn.", False)
    invented_games: int = setting(
        "How many games to invent for training.", 500, minimum=1, maximum=20000, rule=False,
        only_if=_OF_INVENTED)
    invented_seed: int = setting("Seed of the invented games.", 0, seed=True, rule=False,
        only_if=_OF_INVENTED)
    invented_rooms: tuple[str, ...] = setting(
        f"Rooms to invent: {', '.join(ROOMS)}; empty: all. Bathrooms have the fewest things and "
        "places.", (), rule=False, only_if=_OF_INVENTED)
    invented_tasks: tuple[str, ...] = setting(
        f"Kinds of task to invent: {', '.join(TASKS)}; empty: all. The shortest is `put`, the "
        "longest `two`.", (), rule=False, only_if=_OF_INVENTED)
