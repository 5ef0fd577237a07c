"""Where a job's environment is: a server of its own, or the process of the job's program.

Used by the declarations of rollouts, experts and searches; their programs open it by `connect.py`.
"""

from __future__ import annotations

from dataclasses import replace

from agentc.backend_api import LeaseDraft, LowerContext, StageView
from agentc_backends.software import LIGHT


def environment_lease(view: StageView, context: LowerContext) -> LeaseDraft:
    """The lease of the stage's environment for a program that runs in LIGHT, where
    `environment_at` says. No key depends on it: the program meets the same sessions."""
    lease = context.environment_lease(view)
    wanted = view.text("environment_at")
    return replace(lease, port="inside") if wanted == "auto" and _fits(lease) else lease


def _fits(lease: LeaseDraft) -> bool:
    """Whether the program can open it: quick calls, the program's own software, nothing that a
    server alone would be given, and no server that jobs are meant to share."""
    apart = lease.secrets or lease.environment_variables or lease.input is not None
    alone = lease.scope == "job"
    return lease.inside and alone and lease.software == LIGHT and not apart
