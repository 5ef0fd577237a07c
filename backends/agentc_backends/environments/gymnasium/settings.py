"""What a spec may write of an environment of gymnasium's, and what its server is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentc.program.settings import setting

Colours = Literal["brackets", "names", "drop"]


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class GymnasiumSettings:
    id: str = setting(
        "What `gymnasium.make` takes: `FrozenLake-v1`, or `package.module:Name-v0`, whose module "
        "is imported first. Code that is not gymnasium's own runs only where AGENTC_ALLOW_LAUNCH "
        "is 1.")
    # What a server is told are the numbers, however they are written.
    splits: Mapping[str, Any] = setting(
        "Tasks are seeds of `reset`; those of each split: `{range: [first, end]}` (the end is left "
        "out), `{ids: [...]}` or `{file: path}`, each with `except: [other split]`. Splits that "
        "share a seed are refused.")
    kwargs: Mapping[str, Any] = setting("Further arguments of `gymnasium.make`.", {})
    instruction: str | None = setting(
        "What each task's first text begins with.", None, blank=True)
    actions: tuple[str, ...] = setting(
        "Names of a Discrete space's actions, in order. Unset: their numbers.", ())
    observation: Literal["value", "ansi", "both", "none"] = setting(
        "What agents observe: the `value` of the observation, the `ansi` rendering, `both`, or "
        "`none`, where `info` says enough.", "value")
    colours: Literal["brackets", "names", "drop"] = setting(
        "What becomes of colours in renderings: `[X]` (`brackets`), `<red>X</red>` (`names`), or "
        "only X (`drop`).", "brackets")
    digits: int = setting("Significant digits of numbers with a fraction.", 4, minimum=1,
                          maximum=17)
    info: tuple[str, ...] = setting("Values of `info` that are added to each observation.", ())
    reward: Mapping[str, Any] = setting("What the environment's rewards mean.", {})
    max_turns: int = setting("Turns of an episode, where the stage does not say.", 50, minimum=1)
