"""ALFWorld's settings: what a spec may write, and what the server is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentc_backends.environments.alfworld.splits import DEFAULT, INVENTED, ROOMS, TASKS
from agentc_backends.environments.server.settings import setting


# fmt: off
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
        "How many games to invent for training.", 500, minimum=1, maximum=20000, rule=False)
    invented_seed: int = setting("Seed of the invented games.", 0, seed=True, rule=False)
    invented_rooms: tuple[str, ...] = setting(
        f"Rooms to invent: {', '.join(ROOMS)}; empty: all. Bathrooms have the fewest things and "
        "places.", (), rule=False)
    invented_tasks: tuple[str, ...] = setting(
        f"Kinds of task to invent: {', '.join(TASKS)}; empty: all. The shortest is `put`, the "
        "longest `two`.", (), rule=False)
