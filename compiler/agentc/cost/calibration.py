"""What this machine was measured to do, in place of what the prior says of processors.

Measured once (`agentc_backends.software.calibrate`, in the trainers' own software) and kept in the
store until the machine or the software is another one; `hardware.ComputeProfile` holds it, and
`seconds.py` asks for rates. Neighbours: `measuring.py` runs it, `contention.py` is about others.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from agentc.runtime.machine.hardware import MachineProbe
from agentc.runtime.store.layout import StoreLayout

PROGRAM = "agentc_backends.software.calibrate"
TRAINER_SHARE = 0.7
"""What a trainer makes of the bare step that is measured: padding, batches, logging."""
REFERENCE = {"import_s": 3.7, "one_s": 0.0016, "many_s": 0.0036, "interpreter_s": 0.0017}
"""The same measures on the machine whose runs the prior's other constants were set by (2 cores of
an Intel Xeon, 2026): what is started, decoded and interpreted takes so many times the prior."""
_LEAST, _MOST = 0.1, 10.0
"""A measure that is further off than that is no measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """`rates`: floating-point operations a second of one core in training, by width of the model;
    `overhead`: seconds of a step for each block and the head. `starting`, `decoding` and
    `interpreting` are times by those of the reference machine."""

    rates: Mapping[int, float]
    overhead: float
    starting: float
    decoding: float
    interpreting: float

    def rate(self, width: float) -> float:
        """Operations a second of one core for a model of a width: between those measured by its
        logarithm, beyond them the nearest."""
        known = sorted(self.rates.items())
        if width <= known[0][0]:
            return known[0][1]
        for (low, slow), (high, fast) in pairwise(known):
            if width <= high:
                share = math.log(width / low) / math.log(high / low)
                return slow + share * (fast - slow)
        return known[-1][1]


def read_calibration(store: StoreLayout, lock: str) -> Calibration | None:
    """What the store knows of this machine with this software, or None."""
    try:
        kept = json.loads(calibration_file(store, lock).read_text(encoding="utf-8"))
        return calibration_of(kept["measured"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def calibration_file(store: StoreLayout, lock: str) -> Path:
    """Where it is kept: by processor, cores, and the lock's digest of the software."""
    text = json.dumps([machine_words(), lock], sort_keys=True)
    name = hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
    return store.root / "calibration" / f"{name}.json"


def machine_words() -> dict[str, Any]:
    """What tells one machine from another: its processor and the cores that may be used."""
    told = MachineProbe().describe()
    return {name: told.get(name) for name in ("cpu", "cpus", "cores")}


def calibration_of(measured: Mapping[str, Any]) -> Calibration:
    """What PROGRAM measured. Raises ValueError for what cannot be."""
    try:
        found = _read(measured)
    except (KeyError, TypeError, AttributeError, ArithmeticError, IndexError) as error:
        raise ValueError(f"not the measures of a machine: {error}") from error
    times = (found.starting, found.decoding, found.interpreting)
    if not all(_LEAST < each < _MOST for each in times) or min(found.rates.values()) <= 0:
        raise ValueError("no machine is like that")
    return found


def _read(measured: Mapping[str, Any]) -> Calibration:
    rates, overheads = {}, []
    for width, step in measured["training"].items():
        weights, layers, tokens = step["weights"], step["layers"], step["tokens"]
        # As docs/cost.md counts: six operations a weight and token, and what attention takes.
        operations = 6 * tokens * (weights + layers * int(width) * step["length"])
        rates[int(width)] = TRAINER_SHARE * operations / (step["step_s"] - step["overhead_s"])
        overheads.append(step["overhead_s"] / (layers + 1))
    decoding = measured["decoding"]
    compared = {**measured, **decoding}
    ratio = {name: float(compared[name]) / usual for name, usual in REFERENCE.items()}
    return Calibration(
        rates=rates,
        overhead=overheads[0],
        starting=ratio["import_s"],
        decoding=math.sqrt(ratio["one_s"] * ratio["many_s"]),
        interpreting=ratio["interpreter_s"],
    )
