"""The corridor's settings: what a spec may write, and what the server receives."""

from __future__ import annotations

from dataclasses import dataclass

from agentc.program.settings import only_with, setting
from agentc_backends.environments.corridor.rules import GATE, ROOMS, STEP, STREET, WON

SPLITS = ("train", "validation", "test")
TASKS, MAX_STEPS, FEWEST_STEPS = 100, 60, len(ROOMS)
SUCCESS_AT = 1.0
"""Through the gate in at most ten steps, or a gamble won in the first twenty. Whoever is still
inside, or out in the street, has at most 0, so that an episode which a rollout breaks off never
passes for a success."""


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class CorridorSettings:
    tasks: int = setting(
        "Tasks of each split. All begin in the first room; a task fixes, together with an "
        "episode's seed, when `right` leads on.", TASKS, minimum=1, maximum=10_000)
    max_steps: int = setting(
        "Actions of an episode, which is then cut off and not over: what would follow after 60 "
        "weighs 0.0018 of what it is, at a discount of 0.9.", MAX_STEPS, minimum=FEWEST_STEPS,
        maximum=1000)
    expert_skill: float = setting(
        "How good the expert is: at each step it says `right` with this probability, else any of "
        "the three actions. Below 1 it is a start for what learns from rewards.", 1.0, minimum=0,
        maximum=1, rule=False)
    gamble: bool = setting(
        "A fourth action, `gamble`, ends the episode: 20 with probability 0.1, else -5. It is "
        "worth -2.5 anywhere and is never best, but the best episodes of who gambles are won "
        "gambles: what imitates good episodes learns luck.", False)
    expert_gambles: float = setting(
        "At each step the expert gambles with this probability, else does what its skill says.",
        0.0, minimum=0, maximum=1, rule=False,
        only_if=only_with(
            "gamble", because="without `gamble: true` there is nothing to gamble with"))

    def __post_init__(self) -> None:
        if self.expert_gambles and not self.gamble:
            raise ValueError("the expert gambles where there is no gamble")


def reward_range(max_steps: int, gamble: bool = False) -> tuple[float, float]:
    """Of an episode's sum: out into the street at the last step (a gamble lost then is no worse),
    or straight through the gate; a gamble won at once is more."""
    best = WON if gamble else (FEWEST_STEPS - 1) * STEP + GATE
    return (max_steps - 1) * STEP + STREET, best
