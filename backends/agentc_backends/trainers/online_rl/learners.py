"""The learner and the buffer that a job's config asks for. Neighbours: `backend.py` writes that
config; `archer.py`, `chai.py`, `filtered_bc.py`, `ppo.py` and `trl_learner.py` are the learners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentc_backends.trainers.online_rl.archer import (
    ActorPhase,
    ArcherLearner,
    ChaiLearner,
    CriticLearner,
    CriticPhase,
)
from agentc_backends.trainers.online_rl.critic import BestOf
from agentc_backends.trainers.online_rl.filtered_bc import FilteredLearner
from agentc_backends.trainers.online_rl.learning import Learner, Learning
from agentc_backends.trainers.online_rl.ppo import ClippedPhase, PpoLearner, PpoRules, ValuePhase
from agentc_backends.trainers.online_rl.publishing import critic_description
from agentc_backends.trainers.online_rl.replay import ReplayBuffer


def learner_of(asked: Mapping[str, Any], learning: Learning) -> Learner:
    """By `algorithm`. Raises ValueError for one that is not there."""
    match asked["algorithm"]:
        case "archer":
            actor = ActorPhase(**asked["actor"])
            return ArcherLearner(learning, CriticPhase(**asked["critic"]), actor)
        case "chai":
            return ChaiLearner(learning, CriticPhase(**asked["critic"]))
        case "filtered_bc":
            actor = ActorPhase(**asked["actor"])
            return FilteredLearner(learning, actor, asked["keep_share"], asked["window"])
        case "ppo":
            clipped, values = ClippedPhase(**asked["actor"]), ValuePhase(**asked["critic"])
            return PpoLearner(learning, values, clipped, PpoRules(**asked["rules"]))
        case "grpo" | "rloo":
            # TRL takes seconds to import, and no other learner has it.
            from agentc_backends.trainers.online_rl.trl import GroupPhase, TrlLearner

            return TrlLearner(learning, GroupPhase(**asked))
        case other:
            raise ValueError(f"no algorithm {other!r}")


def choice_of(learner: Learner) -> BestOf | None:
    """Who chooses among candidates while the policy acts; None where what is drawn is said."""
    return learner.choice if isinstance(learner, ChaiLearner) else None


def critic_facts(
    learner: Learner, asked: Mapping[str, Any], prompt: Mapping[str, Any]
) -> dict[str, Any]:
    """What run.json says of a run that has a critic: see `run_critic.py`. `asked` is the config
    that the learner is of."""
    if not isinstance(learner, CriticLearner):
        return {}
    return {"critic": critic_description(prompt, asked.get("encoder"))}


def buffer_of(asked: Mapping[str, Any], learner: Mapping[str, Any]) -> ReplayBuffer:
    """What the run learns from again; rewards count less by the critic's discount."""
    discount = learner.get("critic", {}).get("discount", 1.0)
    return ReplayBuffer(asked["capacity"], discount, asked["episodes"], asked["by"])
