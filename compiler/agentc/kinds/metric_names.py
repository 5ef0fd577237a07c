"""What can be said of each task by a number: the names that `metric:` of a claim takes.

`reward` and `success` are measured by every evaluation, `win_rate` of two, `cosine` and `composite`
where the environment calls its reward so, the others where a stage asks for them. A run of RL has
a curve, which says how much was played until its return reached a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from agentc.kinds.artifacts import METRICS, POLICY_RUN
from agentc.kinds.field import Json
from agentc.kinds.kind import Kind

RewardName: TypeAlias = Literal["cosine", "composite"]
"""What an environment may call its reward: the cosine of two pictures' features, as an encoder
makes them, or the mean of several likenesses."""
Family: TypeAlias = Literal[
    "reward", "success", "best_of", "pass_at", "loops", "revision_length", "revised", "win_rate",
    "cosine", "composite", "trajectories_to", "steps_to", "tokens_to",
]  # fmt: skip
REWARD_NAMES: tuple[RewardName, ...] = get_args(RewardName)

METRIC_NAMES = (
    "reward", "success", "best_of(10)", "pass_at(10)", "loops", "revision_length", "revised",
    "win_rate", *REWARD_NAMES, "trajectories_to", "steps_to", "tokens_to",
)  # fmt: skip
"""How they are written; 10 stands for any number of attempts."""
METRIC_DOCS: Mapping[str, str] = {
    "reward": "The reward of an episode, as its environment has it; of a task, the mean over its "
    "attempts.",
    "success": "The share of episodes whose reward reaches the environment's bar, or the stage's "
    "`success_at`.",
    "best_of": "`best_of(k)`: the expected largest reward of k attempts at a task, over all "
    "choices of k of its attempts. A stage measures it with `best_of: [k]`.",
    "pass_at": "`pass_at(k)`: the chance that one of k attempts at a task succeeds, unbiased. A "
    "stage measures it with `best_of: [k]`.",
    "loops": "The share of episodes in which a block of actions is repeated at once (Agent-R, "
    "figure 4). A stage measures it with `loops: {}`.",
    "revision_length": "The mean number of the first action that the judge found wrong, over the "
    "revisions of a task (Agent-R, table 3). Of `revise` stages.",
    "revised": "The share of revisions of a task in which the judge found a wrong action. Of "
    "`revise` stages.",
    "win_rate": "The share of tasks on which the reward is above the baseline's, a tie counted as "
    "a half. `compare` measures it with `wins: true`.",
    "cosine": "The cosine of two pictures' features: the reward of environments that compare "
    "pages.",
    "composite": "The mean of several likenesses of two pages, where the environment's reward is "
    "that.",
    "trajectories_to": "Episodes that a run of RL played until its return reached a value.",
    "steps_to": "Turns that a run of RL played until its return reached a value.",
    "tokens_to": "Tokens that the policy of a run of RL wrote until its return reached a value.",
}
METRIC_PATTERN = (
    r"^(reward|success|loops|revision_length|revised|win_rate|cosine|composite|"
    r"trajectories_to|steps_to|tokens_to|"
    r"best_of\([1-9][0-9]*\)|pass_at\([1-9][0-9]*\))$"
)
_NAME = re.compile(r"^(?P<family>[a-z_]+)(\((?P<draws>[0-9]+)\))?$")


@dataclass(frozen=True, slots=True)
class Metric:
    """A name, taken apart: `best_of(10)` is of the family `best_of`, with 10 `draws`."""

    family: Family
    draws: int | None = None

    @property
    def is_share(self) -> bool:
        """Whether a task's score is a share of its episodes."""
        return self.family in ("success", "pass_at", "loops", "revised", "win_rate")

    @property
    def of_two(self) -> bool:
        """Whether it is of one evaluation against another, and no difference of two numbers."""
        return self.family == "win_rate"

    @property
    def reward_name(self) -> RewardName | None:
        """What the environment has to call its reward, for it to be measured."""
        return next((name for name in REWARD_NAMES if name == self.family), None)

    @property
    def of_revisions(self) -> bool:
        """Whether the rows of a revision tell it, and no episodes."""
        return self.family in ("revision_length", "revised")

    @property
    def of_curve(self) -> bool:
        """Whether the curve of a run of RL tells it, and no episodes of a policy."""
        return self.family in ("trajectories_to", "steps_to", "tokens_to")

    def missing(self, kind: Kind, setting: Callable[[str], Json]) -> str | None:
        """What a stage of a kind would have to set so that it measures this; None where it does,
        and "" where no setting of it would do."""
        if self.of_revisions:
            parts = setting("parts") if kind.has("parts") else []
            asked = isinstance(parts, list) and "revision" in parts
            return None if asked else "parts: [revision]" if kind.has("parts") else ""
        if self.of_curve:
            return None if kind.produces is POLICY_RUN else ""
        if kind.produces is not METRICS:
            return ""
        match self.family:
            case "best_of" | "pass_at":
                name, value = "best_of", f"[{self.draws}]"
                draws = setting(name) if kind.has(name) else None
                asked = isinstance(draws, list) and self.draws in draws
            case "loops":
                name, value = "loops", "{}"
                asked = kind.has(name) and setting(name) is not None
            case _:
                # What an environment calls its reward, no script measures.
                return "" if kind.products and self.reward_name else None
        return None if asked else f"{name}: {value}" if kind.has(name) else ""


def read_metric(name: str) -> Metric:
    """The measure of a name that has the pattern."""
    found = _NAME.match(name)
    assert found is not None, name
    draws = found["draws"]
    return Metric(cast(Family, found["family"]), None if draws is None else int(draws))
