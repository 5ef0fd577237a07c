"""Where jobs run on this machine: whether it has what the jobs ask for. The cluster's part is
`cluster`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from agentc.placement import Settled
from agentc.preflight.finding import Finding
from agentc.runtime.hardware import Machine
from agentc.runtime.prologue import memory_limit, visible_gpus


def check_machine(settled: Sequence[Settled]) -> Iterator[Finding]:
    """GPUs and memory of this machine against the largest request, as each job's prologue does."""
    most = max((each.number("gpus") or 0 for each in settled), default=0)
    stages = tuple(
        dict.fromkeys(
            str(job["stage"])
            for each in settled
            if most and each.number("gpus") == most
            for job in each.jobs
        )
    )
    if most:
        machine = Machine()
        gpus = visible_gpus(os.environ, lambda: list(machine.describe()["gpus"]))
        if gpus is None:
            yield Finding(
                check="gpus",
                verdict="warning",
                message=f"{most} GPUs are asked for, and this machine shows none: the work would "
                "be done by the processor",
                about=stages,
                fix="run it where there are GPUs, or set placement.gpus to 0 to say that it is "
                "meant (it changes no key)",
            )
        elif gpus[0] < most:
            yield Finding(
                check="gpus",
                verdict="problem",
                message=f"{most} GPUs are asked for, and jobs see {int(gpus[0])} here ({gpus[1]})",
                about=stages,
                fix="lower placement.gpus and processes, or run it where there are as many",
            )
        else:
            text = f"{int(gpus[0])} GPUs here ({gpus[1]}), {most} asked for"
            yield Finding(check="gpus", verdict="ok", message=text)
    wanted = max((each.number("mem_mb") or 0 for each in settled), default=0)
    limit = memory_limit(os.environ)
    if wanted and limit is not None:
        enough = wanted * 0.95 <= limit[0]
        yield Finding(
            check="memory",
            verdict="ok" if enough else "problem",
            message=f"{int(limit[0])} MiB here ({limit[1]}), {wanted} asked for",
            fix=None if enough else "lower placement.mem_mb, or run it where there is as much",
        )
