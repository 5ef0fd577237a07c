"""The table of stage kinds, and names of kinds by what they do. Each is declared with its fields in
the module of its topic; one rule of the Snakefile stands for each of them.

A new kind is in the groups that its declaration puts it in; besides `_ORDER` nothing lists kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from agentc.kinds.artifacts import CHECKPOINT, POLICY_RUN, PREFERENCE_PAIRS, ArtifactType
from agentc.kinds.evaluation import EVALUATION_KINDS
from agentc.kinds.interaction import INTERACTION_KINDS
from agentc.kinds.kind import Kind
from agentc.kinds.models import MODEL_KINDS
from agentc.kinds.reinforcement import REINFORCEMENT_KINDS
from agentc.kinds.script import SCRIPT_KINDS
from agentc.kinds.search import SEARCH_KINDS
from agentc.kinds.training import TRAINING_KINDS

_DECLARED = {
    kind.name: kind
    for kind in (
        *MODEL_KINDS,
        *INTERACTION_KINDS,
        *TRAINING_KINDS,
        *REINFORCEMENT_KINDS,
        *SEARCH_KINDS,
        *EVALUATION_KINDS,
        *SCRIPT_KINDS,
    )
}
_ORDER = (
    "model",
    "encoder",
    "text_encoder",
    "expert",
    "privileged",
    "dataset",
    "sft",
    "dpo",
    "critic",
    "online_rl",
    "offline_rl",
    "checkpoint",
    "rollout",
    "search",
    "revise",
    "mix",
    "sample",
    "rank",
    "pair",
    "evaluate",
    "benchmark",
    "measure",
    "compare",
    "script",
    "verdicts",
    "report",
)
"""As pages and help list them."""

KINDS: tuple[Kind, ...] = tuple(_DECLARED.pop(name) for name in _ORDER)
assert not _DECLARED, f"kinds without a place in the order: {list(_DECLARED)}"

_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_named(name: str) -> Kind | None:
    """The kind of that name, or None."""
    return _BY_NAME.get(name)


def kinds_where(holds: Callable[[Kind], bool]) -> tuple[str, ...]:
    """The names of the kinds of which something holds, in the order of the table."""
    return tuple(kind.name for kind in KINDS if holds(kind))


@cache
def makers(artifact: ArtifactType) -> tuple[str, ...]:
    """The kinds that produce an artifact of that type, or of one that extends it."""
    return kinds_where(lambda kind: kind.produces.fits(artifact))


TRAINERS = kinds_where(lambda kind: kind.trains)
PAIR_TRAINERS = kinds_where(
    lambda kind: kind.trains and any(role.accepts == (PREFERENCE_PAIRS,) for role in kind.roles)
)
"""Trainers whose rows are pairs: two sides each."""
ACTING = kinds_where(lambda kind: kind.acts)
SERVED = kinds_where(lambda kind: "server" in kind.uses)
"""Kinds that ask a model server."""
LEASING = kinds_where(lambda kind: bool({"server", "environment"}.intersection(kind.uses)))
"""Kinds whose jobs may lease one: to ask it, or for an environment that asks it."""
ON_TASKS = kinds_where(lambda kind: kind.has("split"))
"""Kinds that take tasks of a split."""
ONLINE = kinds_where(lambda kind: kind.online)
"""Kinds that act and learn in one job."""
REINFORCED = makers(POLICY_RUN)
"""Kinds that train a policy by rewards, in a loop of their own: those and offline RL."""
COLLECTORS = kinds_where(lambda kind: kind.collects)
REWORKERS: Mapping[str, tuple[str, ...]] = {
    kind.name: kind.reworks for kind in KINDS if kind.reworks
}
"""Kinds that make training data of what was collected, and the inputs that they make it of."""
MODEL_MAKERS = kinds_where(lambda kind: kind.trains or kind.produces.fits(CHECKPOINT))
"""Kinds whose jobs hold the weights of a model in their own process."""
MODEL_SOURCES = kinds_where(
    lambda kind: kind.produces.fits(CHECKPOINT) and not kind.reads(CHECKPOINT)
)
"""Kinds whose models descend from no other stage."""
WITHOUT_MODEL = kinds_where(
    lambda kind: kind.name not in (*MODEL_MAKERS, *SERVED) and not kind.gathers
)
"""Kinds that neither hold nor ask a model; without those that gather, which nobody places."""
