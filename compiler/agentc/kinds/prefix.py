"""Fields and input of kinds whose episodes or trees may begin with turns of other trajectories:
ETO's pairs of single steps (arXiv 2403.02502, table 4), Agent-R's test of revision (2501.11425,
table 3)."""

from agentc.kinds.artifacts import SEARCH_TREES, TRAJECTORIES
from agentc.kinds.field import Role, boolean, choice, group, integer, number

PREFIXES = Role(
    name="prefixes",
    accepts=(TRAJECTORIES, SEARCH_TREES),
    doc="What is cut: each episode, or tree, plays the turns before the cut again, and the policy "
    "goes on from there.",
    many=True,
    optional=True,
)

PREFIX = group(
    "prefix",
    "Where the trajectories of `prefixes` are cut. At least their last turn is done again.",
    (
        choice("cut", "`random`: behind one turn of each, all alike likely; `every`: behind each "
               "turn, an episode (or `attempts`) for every length.", ("random", "every"),
               "random"),
        integer("shortest", "Fewest turns of a prefix; 0 also begins without any.", 1, minimum=0),
        integer("longest", "Most turns of a prefix; null: all but the last of its trajectory.",
                None, minimum=0, nullable=True),
        number("max_reward", "Cut trajectories with at most this reward; null: all of them.", None,
               nullable=True),
        boolean("counted", "Whether its turns count towards `max_turns`, or towards `depth` of a "
                "search. The environment's own limit counts them in any case.", True),
    ),
)  # fmt: skip
