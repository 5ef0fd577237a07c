"""The learner and the buffer that a job's config asks for. Neighbours: `backend.py` writes that
config, `archer.py`, `filtered_bc.py` and `ppo.py` are the learners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentc_backends.trainers.online_rl.archer import ActorPhase, ArcherLearner, CriticPhase
from agentc_backends.trainers.online_rl.filtered_bc import FilteredLearner
from agentc_backends.trainers.online_rl.learner import Learner, Learning
from agentc_backends.trainers.online_rl.ppo import ClippedPhase, PpoLearner, PpoRules, ValuePhase
from agentc_backends.trainers.online_rl.replay import ReplayBuffer


def learner_of(asked: Mapping[str, Any], learning: Learning) -> Learner:
    """By `algorithm`. Raises ValueError for one that is not there."""
    match asked["algorithm"]:
        case "archer":
            actor = ActorPhase(**asked["actor"])
            return ArcherLearner(learning, CriticPhase(**asked["critic"]), actor)
        case "filtered_bc":
            actor = ActorPhase(**asked["actor"])
            return FilteredLearner(learning, actor, asked["keep_share"], asked["window"])
        case "ppo":
            clipped, values = ClippedPhase(**asked["actor"]), ValuePhase(**asked["critic"])
            return PpoLearner(learning, values, clipped, PpoRules(**asked["rules"]))
        case "grpo" | "rloo":
            # TRL takes seconds to import, and no other learner has it.
            from agentc_backends.trainers.online_rl.trl_learner import GroupPhase, TrlLearner

            return TrlLearner(learning, GroupPhase(**asked))
        case other:
            raise ValueError(f"no algorithm {other!r}")


def buffer_of(asked: Mapping[str, Any], learner: Mapping[str, Any]) -> ReplayBuffer:
    """What the run learns from again; rewards count less by the critic's discount."""
    discount = learner.get("critic", {}).get("discount", 1.0)
    return ReplayBuffer(asked["capacity"], discount, asked["episodes"], asked["by"])
