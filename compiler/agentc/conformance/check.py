"""Check: one promise that a backend is held to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class Fault(Exception):  # noqa: N818 - the backend's, not the kit's
    """The backend breaks the promise; the message says how, for its author."""


class Skipped(Exception):  # noqa: N818
    """The check cannot be made here; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`name` tells checks of a backend apart (`setting lr`), `promise` is what must hold. `run`
    returns nothing when it does, else it raises Fault or Skipped."""

    name: str
    promise: str
    run: Callable[[], None]


def demand(holds: bool, message: str) -> None:
    """Raise Fault unless the condition holds."""
    if not holds:
        raise Fault(message)
