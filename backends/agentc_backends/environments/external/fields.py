"""Fields of specs for external servers: an address or a command that starts one, and its rewards.

Which program runs, where and with what decides what the world is, so command, folder and variables
enter keys; how long it may take does not, nor an address. Declarations read this; `launch.py`
starts the command."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentc.backend_api import EnvironmentBackend, OptionView
from agentc.kinds.field import Field, Json, choice, number, string, strings
from agentc_backends.environments.external.environment import REWARD, REWARD_KINDS
from agentc_backends.environments.external.task_lists import names_of


def launch_fields(ready_path: str) -> tuple[Field, ...]:
    """The keys of `launch`; `ready_path` is where such servers usually answer first."""
    return (
        *command_fields("Program and arguments; `{port}` and `{host}` are filled in."),
        string("ready_path", "Path that answers without an error once it is ready.", ready_path,
               identity="placement"),
        number("ready_timeout_s", "How long it may take to get ready.", 120.0, above=0,
               identity="placement"),
    )  # fmt: skip


def command_fields(of_command: str) -> tuple[Field, ...]:
    """The keys of a program to start; `of_command` says what is filled into its words."""
    return (
        strings("command", of_command, (), blank=True),
        string("cwd", "Folder to start it in.", nullable=True),
        Field(name="variables", schema={"type": "object"}, default={},
              doc="Environment variables; PYTHONHASHSEED is 0 unless given."),
    )  # fmt: skip


def check_place(options: OptionView, url: str | None, launch: Mapping[str, Any] | None) -> None:
    """Where the server is has to be said once, by `url` or `launch`."""
    if launch is None:
        if url is None:
            options.refuse("url", "neither `url` nor `launch` states where the server is",
                           fix="give its address as `url`, or start it with `launch`")  # fmt: skip
        return
    if url is not None:
        options.refuse("launch", "`url` names a server that runs already, so none is to be started",
                       fix="give `url` or `launch`")  # fmt: skip
    if not launch["command"]:
        options.refuse("launch", "`launch` needs a `command`",
                       fix="write `command: [program, argument]`")  # fmt: skip
    elif not launch["command"][0].strip():
        options.refuse("launch.command", "the first word of `command` is the program, and is empty",
                       fix="write `command: [program, argument]`")  # fmt: skip


REWARD_FIELDS: tuple[Field, ...] = (
    choice("kind", "How rewards of steps make the episode's: their `sum`, the `latest` counts, or "
           "their `max`.", REWARD_KINDS, REWARD["kind"]),
    number("lowest", "Of an episode, in the environment's units; less is an error.",
           REWARD["lowest"]),
    number("highest", "Of an episode, in the environment's units; more is an error.",
           REWARD["highest"]),
    number("scale", "Factor that turns these units into agentc's.", REWARD["scale"],
           above=0),
    number("success_at", "An episode with at least this reward, scaled, is a success. Unset: the "
           "highest.", nullable=True),
)  # fmt: skip
"""The keys of `reward`."""


def check_rewards(options: OptionView) -> None:
    """Refuse bounds and a success that no episode, or each, would have."""
    low, high = options.number("reward.lowest"), options.number("reward.highest")
    scale, at = options.number("reward.scale"), options.get("reward.success_at")
    if not low < high:
        options.refuse("reward.lowest", f"`lowest` is {low:g}, and `highest` is {high:g}",
                       fix="give the lowest and the highest reward of an episode")  # fmt: skip
    elif isinstance(at, (int, float)) and not low * scale < at <= high * scale:
        options.refuse(
            "reward.success_at",
            f"`success_at` is {at:g}, and rewards run from {low * scale:g} to {high * scale:g}: "
            "every episode succeeds, or none",
        )


def declared_by(backend: EnvironmentBackend, given: Mapping[str, Json]) -> EnvironmentBackend:
    """The declaration under a spec's settings, which may still be wrong in any way."""
    turns = given.get("max_turns")
    return replace(
        backend,
        splits=names_of(given.get("splits")),
        max_turns=turns if isinstance(turns, int) and turns > 0 else backend.max_turns,
        **_declared_rewards(given.get("reward")),
    )


def _declared_rewards(given: Any) -> dict[str, Any]:
    """Members of `EnvironmentBackend` under a spec's `reward`, which may still be wrong in any
    way."""
    told = given if isinstance(given, Mapping) else {}
    low, high, scale = (_finite(told.get(n), REWARD[n]) for n in ("lowest", "highest", "scale"))
    return {
        "reward_range": (low * scale, high * scale),
        "success_at": _finite(told.get("success_at"), high * scale),
    }


def _finite(value: Any, default: float) -> float:
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    return default
