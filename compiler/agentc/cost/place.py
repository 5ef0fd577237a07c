"""Place: what an estimate is for. This machine with its present load, jobs in a cluster's queue, or
GPUs that somebody asks about (`8xa100-80gb`).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from agentc.cost.hardware import GPUS
from agentc.diagnostics.suggest import did_you_mean
from agentc.exit_codes import CommandError
from agentc.memory.cards import CARDS, card_type, largest_card

HERE = "here"
_CORES_PER_GPU = 16
_USUAL_GPUS = 8
_IN_THE_WAY = 0.5
_GPUS_OF_CARD = re.compile(r"(?:(\d+) ?x ?)?([a-z][a-z0-9_-]*)")


class PlaceError(CommandError):
    """No hardware has that name; the message lists what has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """`cores` at once, or jobs of a queue. `gpus` at once: None for as many as the jobs ask for.
    `card` is the type of every GPU, whatever the spec says, and `model` the entry of CARDS whose
    memory each has. `slowdown` is what the present load
    of this machine multiplies the time of CPU jobs by."""

    cores: int
    queued: bool = False
    gpus: int | None = None
    card: str | None = None
    model: str | None = None
    slowdown: float = 1.0
    name: str = HERE

    @property
    def here(self) -> bool:
        """Whether it is this machine."""
        return self.name == HERE


def place_of_hardware(text: str, cores: int | None = None) -> Place:
    """The place that `8xa100-80gb`, `4xh100` or `a100` means. Raises PlaceError."""
    match = _GPUS_OF_CARD.fullmatch(text.strip().lower())
    card = None if match is None else _card(match[2])
    if match is None or card is None or match[1] == "0":
        hint = "" if match is None else did_you_mean(match[2], (*CARDS, *GPUS))
        raise PlaceError(
            f"unknown hardware `{text}`; {hint + '; ' if hint else ''}"
            f"expected `here`, `slurm`, or a GPU with a number, such as `8xa100-80gb`; "
            f"known GPUs: {', '.join(each for each in CARDS if _card(each))}"
        )
    gpus = None if match[1] is None else int(match[1])
    usual = _CORES_PER_GPU * (gpus or _USUAL_GPUS)
    name = match[2] if gpus is None else f"{gpus} x {match[2]}"
    model = largest_card(match[2])
    return Place(cores=cores or usual, gpus=gpus, card=card, model=model, name=name)


def slowdown(cores: int, wanted: int) -> float:
    """How many times longer CPU jobs take on this machine now. Of what the load average has beyond
    the cores half is in the way: schedulers share CPUs among groups of processes."""
    try:
        load = os.getloadavg()[0]
    except OSError:
        return 1.0
    beyond = max(0.0, load + min(wanted, cores) - cores)
    return 1.0 + _IN_THE_WAY * beyond / cores


def _card(name: str) -> str | None:
    """The GPU type that a card or a plain type means, where its speed is known."""
    found = card_type(name) or name
    return found if found in GPUS else None
