"""Whether pip's setting `constraint` leaves a lock's pins alone. uv takes no constraints beside
hashes, and pins that fulfil them need none; where one does not, pip says so. `installer.py` asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agentc.runtime.software.environment import SoftwareEnvironmentError
from agentc.runtime.software.installed import readers_of_demands
from agentc.runtime.software.lock_text import normalised

_COMMENT = re.compile(r"(^|\s)#.*$")
_EXACT = re.compile(r"==\s*([^\s;]+)")


def all_fulfilled(files: Iterable[str], pins: Mapping[str, str]) -> bool:
    """Whether each pin (a line of a lock by normalised name) is among what the files allow; False
    as well where that cannot be read: a file of another place, an option, an address."""
    for file in files:
        demands = _read(file)
        if demands is None:
            return False
        for demand in demands:
            pin = pins.get(normalised(demand.name))
            if pin is None:
                continue
            exact = _EXACT.search(pin)
            if exact is None or demand.url is not None:
                return False
            if not demand.specifier.contains(exact.group(1), prereleases=True):
                return False
    return True


def _read(file: str) -> list[Any] | None:
    """The demands in a file of constraints; None where one is not a name and versions."""
    try:
        reader, _ = readers_of_demands()
        lines = Path(file).read_text(encoding="utf-8").splitlines()
        stripped = [_COMMENT.sub("", line).strip() for line in lines]
        return [reader.Requirement(line) for line in stripped if line]
    except (OSError, ValueError, SoftwareEnvironmentError):
        return None  # packaging's InvalidRequirement is a ValueError
