"""What a leased server is to its job: the closed table of roles. Imports nothing of agentc.

Read by drafts (`agentc.backend_api`), by the passes that place and join servers, and by the
runtime, which is why it needs no more than Python 3.8.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

LeaseRole = Literal["policy", "environment", "simulator", "critic", "reference", "scorer"]


class RoleTraits(NamedTuple):
    """`serves_model`: a model server. It counts as heavy: a job that starts one holds a model
    within its own resources, and gets what `placement:` says. `fuses`: jobs that need the same one
    of this role may be joined into a session."""

    name: LeaseRole
    doc: str
    serves_model: bool
    fuses: bool = False


ROLES: tuple[RoleTraits, ...] = (
    # A critic that ranks, after the fact, is asked as a policy is: by this role alone jobs on one
    # server are joined, and copies fill the GPUs. Beside a policy that acts, it has its own.
    RoleTraits(
        "policy",
        "The model that the job's program calls: one that acts, or one that scores.",
        serves_model=True,
        fuses=True,
    ),
    RoleTraits("environment", "The world that it acts in.", serves_model=False),
    RoleTraits("simulator", "A model that plays somebody in the world.", serves_model=True),
    RoleTraits("critic", "A model that says which of the policy's replies is best.", True),
    RoleTraits("reference", "What the critic's scores are compared with.", True),
    RoleTraits("scorer", "A model by which an environment measures what was made.", True),
)
MODEL_ROLES = frozenset(role.name for role in ROLES if role.serves_model)
FUSED_ROLES = tuple(role.name for role in ROLES if role.fuses)


def is_model_server(role: object) -> bool:
    """Whether a lease of this role, as a plan or a manifest has it, is of a model server."""
    return role in MODEL_ROLES
