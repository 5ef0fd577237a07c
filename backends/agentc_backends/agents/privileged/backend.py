"""Declares `privileged.environment` and lowers its stage to a job with a server of its own."""

from __future__ import annotations

from dataclasses import replace

from agentc.backend_api import JobDraft, LeaseDraft, LowerContext, StageBackend, StageView
from agentc.kinds.artifacts import PRIVILEGED_INFORMATION
from agentc.kinds.interaction import PrivilegedSettings
from agentc_backends.agents.common.lowering import check_split
from agentc_backends.environments.server.settings import PRIVILEGED
from agentc_backends.software import LIGHT


def lower(stage: StageView, context: LowerContext) -> tuple[JobDraft, ...]:
    """One job that leases the environment alone."""
    view = stage.scoped()
    facts = context.environment_facts(view)
    able = facts["capabilities"]
    assert isinstance(able, list)
    if "privileged" not in able:
        view.refuse(
            "split",
            f"the environment {facts['name']} has no hidden text to give (capability `privileged`)",
            fix="leave the stage out, and `privileged` out of the critic: it is trained on what "
            "the agent saw then",
        )
    check_split(view, facts["splits"])
    return (
        JobDraft(
            kind="privileged",
            backend=BACKEND.id,
            version=BACKEND.version,
            software=LIGHT,
            program=("-m", "agentc_backends.agents.privileged.job_privileged"),
            view=view,
            config=view.config_of(PrivilegedSettings),
            inputs={},
            produces=PRIVILEGED_INFORMATION.name,
            leases=(_telling(context.environment_lease(view)),),
        ),
    )


def _telling(lease: LeaseDraft) -> LeaseDraft:
    """The environment's server as this job alone has it, whatever the entry says of its place, and
    without those that it asks: nobody plays here."""
    return replace(
        lease,
        program=(*lease.program, PRIVILEGED),
        scope="job",
        replicas=1,
        copies=None,
        placement={},
        needs=(),
    )


BACKEND = StageBackend(
    id="privileged.environment",
    kind="privileged",
    version=1,
    doc="Requests from an environment that has hidden texts (`/privileged`) for those of a "
    "split's tasks.",
    software=LIGHT,
    lower=lower,
)
