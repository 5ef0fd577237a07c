"""Inputs of kinds whose every reply may be the one of several that a critic chooses: best-of-N at
test time (SWEET-RL, arXiv 2503.15478, figure 3a)."""

from agentc.kinds.artifacts import CHECKPOINT, CRITIC_CHECKPOINT, PRIVILEGED_INFORMATION
from agentc.kinds.field import Role

CHOICE = (
    Role(
        name="critic",
        accepts=(CRITIC_CHECKPOINT,),
        doc="Who chooses among `candidates`.",
        optional=True,
    ),
    Role(
        name="reference",
        accepts=(CHECKPOINT,),
        doc="What the critic was trained against.",
        optional=True,
    ),
    Role(
        name="privileged",
        accepts=(PRIVILEGED_INFORMATION,),
        doc="The hidden texts, of a critic that was trained with them. The policy sees none.",
        optional=True,
    ),
)
