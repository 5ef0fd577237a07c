"""The main program of a job of agents: what ended it becomes an exit code and a line for people."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from agentc.program.job import Job, load_job
from agentc_backends.agents.common.failures import (
    ErrorBudgetError,
    FatalError,
    OutOfTimeError,
    ServerLostError,
)
from agentc_backends.clients.errors import (
    ContextOverflowError,
    InfrastructureError,
    ServiceError,
)
from agentc_backends.job_device import NoGpuError


def run_job(name: str, work: Callable[[Job], Awaitable[None]], *, on_overflow: str = "") -> int:
    """Exit 0 when `work` has written the artifact, 75 (another run may succeed) when servers failed
    or the time limit is near, 1 when the job is wrong or a service refuses for good. `on_overflow`
    says what the spec can do about a prompt that is too long."""
    job = load_job()

    async def working() -> None:
        await work(job)

    try:
        asyncio.run(working())
    except (ServerLostError, ErrorBudgetError, InfrastructureError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return os.EX_TEMPFAIL
    except OutOfTimeError as stopped:
        print(f"{name}: {stopped}", file=sys.stderr)
        return job.out_of_time()
    except ContextOverflowError as error:
        print(f"{name}: {error}. {on_overflow}", file=sys.stderr)
        return 1
    except (FatalError, ServiceError, NoGpuError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    return 0
