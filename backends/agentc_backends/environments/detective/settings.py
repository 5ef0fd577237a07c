"""Detective's settings: what a spec may write, and what the server is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentc_backends.environments.detective.stories import DEFAULT_FILE
from agentc_backends.environments.server.settings import setting

MAX_STEPS = 60


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class DetectiveSettings:
    sha256: str | None = setting("Of the game's file; Detective's.", None, in_spec=False)
    game: str | None = setting(
        f"The game's file (.z5, ...); null: `{DEFAULT_FILE}` beside the spec. It is not ours to "
        "ship; the README says where to get it.", None, rule=False)
    points: int | None = setting(
        "What can be gained in a game other than Detective (the highest score less the first one).",
        None, minimum=1, rule=False)
    actions: Literal["legal", "free"] = setting(
        "`legal`: an action outside of the list that the observation ends with is refused; `free`: "
        "any command goes to the game, as in ArCHer's code, but those that step out of it (verbs "
        "for its author, menus, several commands in one).", "legal")
    max_steps: int = setting(
        "Actions until an episode ends. ArCHer's class says 60, its training loop 50.", MAX_STEPS,
        minimum=1)
    expert_skill: float = setting(
        "The probability that a game of the expert follows the walkthrough; any other one is of "
        "legal actions drawn evenly, some 40 points: games of both make a start for what learns "
        "from rewards.", 1.0, minimum=0, maximum=1, rule=False, later=True)
    processes: int | None = setting(
        "Interpreters at a time; null: one for each core.", None, minimum=1, identity="placement")
    step_timeout_s: float = setting(
        "Seconds of processor time until an interpreter that does not answer is ended and its "
        "episode is void.", 5.0, minimum=1, identity="placement")
    forget: bool = setting("Find all legal actions anew.", False, in_spec=False)
