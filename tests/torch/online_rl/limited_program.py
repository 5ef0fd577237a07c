"""Program: online RL whose time limit is near after each phase, however fast the machine is."""

from __future__ import annotations

import sys
from typing import Any

from agentc_backends.agents.common.program import run_job
from agentc_backends.trainers.common.checkpoints import Deadline
from agentc_backends.trainers.online_rl.job_online import train


def _always(_deadline: Deadline, _model: Any) -> bool:
    return True


if __name__ == "__main__":
    Deadline.is_near = _always  # type: ignore[method-assign]
    sys.exit(run_job("online_rl", train))
