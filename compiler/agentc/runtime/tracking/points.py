"""Points from lines: `logs/steps.jsonl` of trainers, `curve.jsonl` of online RL.

Neighbour: `tail.py` reads the lines while they are written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_STEP = ("step", "iteration")
"""What counts, in the order of preference: a line has one of them."""
_UNSAFE = re.compile(r"[^\w\-. /]")
"""What the narrowest of the trackers (MLflow) has in no name of a metric."""
_OF_THE_CLOCK = ("_per_s", "_seconds")


class Point(NamedTuple):
    """The numbers of one step, by name; those of nested objects as `return/mean`."""

    step: int
    numbers: dict[str, float]


def read_point(line: bytes) -> Point | None:
    """The point of a line; None where it is no object of JSON, or counts nothing."""
    try:
        row = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None  # it was being written when the job was cut off
    if not isinstance(row, dict):
        return None
    counted = next((name for name in _STEP if _is_count(row.get(name))), None)
    if counted is None:
        return None
    numbers = {name: value for name, value in flat_numbers(row) if name != counted}
    return Point(int(row[counted]), numbers)


def metric_name(text: str) -> str:
    """The same in every tracker: `evaluate@seed=0/reward` is `evaluate_seed_0/reward`."""
    return _UNSAFE.sub("_", text)


def flat_numbers(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of an object, NaN and infinite ones too; texts, lists and null are left out."""
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from flat_numbers(inner, f"{before}{name}/")
        elif isinstance(inner, (int, float)) and not isinstance(inner, bool):
            yield before + str(name), float(inner)


def fingerprint(point: Point) -> int:
    """Differs where a step came out otherwise when it was made again: speeds and times always do,
    and are left out."""
    kept = sorted(
        (name, repr(value))
        for name, value in point.numbers.items()
        if not name.endswith(_OF_THE_CLOCK) and not name.startswith("seconds/")
    )
    return hash(tuple(kept))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
