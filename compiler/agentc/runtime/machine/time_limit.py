"""When a program must have stopped, so that its wrapper can still end its servers and tell of it
before the cluster cuts the job off. Neighbours: prologue.py (the limit), program.py (who heeds it).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from agentc.runtime.machine.prologue import NotGrantedError, time_left

VARIABLE = "AGENTC_STOP_BY"
"""Unix seconds, for other schedulers than SLURM, and for tests; of two limits the earlier holds."""
MARGIN_S = 20.0
"""What servers, the last records and the two Snakemakes around a wrapper take to end; on a busy
node more, so a fiftieth of long limits is kept, up to a minute."""
_LONGEST_MARGIN_S = 60.0


def stop_by(environ: Mapping[str, str]) -> float | None:
    """The moment, in unix seconds; None where no limit is known. Raises NotGrantedError."""
    known: list[float] = []
    value = environ.get(VARIABLE)
    if value:
        try:
            known.append(float(value))
        except ValueError:
            raise NotGrantedError(
                f"{VARIABLE}={value} is no time; it takes unix seconds, as `date +%s` prints them"
            ) from None
    now = time.time()
    left = time_left(environ, now)
    if left is not None:
        known.append(now + left[0] - min(_LONGEST_MARGIN_S, max(MARGIN_S, left[0] / 50)))
    return min(known) if known else None


def stopped_early(line: Mapping[str, Any]) -> str | None:
    """What a progress line says of a program that stopped in time; None where it did not."""
    if line.get("out_of_time") is not True:
        return None
    where = ""
    if isinstance(line.get("done"), (int, float)):
        total = line.get("total")
        unit = str(line.get("unit") or "")
        where = f", at {unit[:-1] if unit.endswith('s') else unit} {line['done']:g}"
        where += f" of {total:g}" if isinstance(total, (int, float)) else ""
    return f"it stopped before its time limit{where}, with its work saved"
