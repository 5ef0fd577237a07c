"""GRPO and RLOO by TRL's trainers: advantages by hand, gradients of the policy's own tokens alone,
and nothing that a run would have to keep besides weights and moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.torch.trl.jobs import small_model
from torch import Tensor

from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.engine.model import load_tokenizer
from agentc_backends.trainers.online_rl.learning import ACTOR, Learning, actor_step
from agentc_backends.trainers.online_rl.readers import Text, TextPrefix
from agentc_backends.trainers.online_rl.replay import Episode, EpisodeTurn, ReplayBuffer
from agentc_backends.trainers.online_rl.sampling import Decode, Sampler
from agentc_backends.trainers.online_rl.settings import GroupPhase
from agentc_backends.trainers.online_rl.state import read_learner, write_learner
from agentc_backends.trainers.online_rl.trl import TrlLearner

RETURNS = (-3.0, -5.0, -20.0, -20.0)
DEVIATIONS = [9.0, 7.0, -8.0, -8.0]
SCALED = [0.970495, 0.754829, -0.862662, -0.862662]
LEFT_OUT = [12.0, 28 / 3, -32 / 3, -32 / 3]
"""Each return less the mean of the other three."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_model(tmp_path_factory.mktemp("model"))


def learner(folder: Path, micro_batch: int = 4, **changes: Any) -> tuple[Any, TrlLearner]:
    """The policy and what learns it."""
    policy = load_model(folder).eval()
    told: dict[str, Any] = {
        "algorithm": "grpo", "episodes": 4, "group": 4, "lr": 1e-3, "updates": 1,
        "minibatches": 1, "max_grad_norm": 0.0, "beta": 0.0, "clip_low": 0.2, "clip_high": 0.2,
        "scale_rewards": "none", **changes,
    }  # fmt: skip
    learning = Learning(
        policy=policy,
        tokenizer=load_tokenizer(str(folder)),
        sampler=Sampler(policy),
        decode=Decode(max_tokens=4, ends=frozenset()),
        seed=3,
        micro_batch=micro_batch,
    )
    return policy, TrlLearner(learning, GroupPhase(**told))


def episodes(iteration: int = 0, returns: Sequence[float] = RETURNS) -> list[Episode]:
    """Of two turns each, of several lengths, with the environment's words between."""
    found = []
    for number, worth in enumerate(returns):
        opening = tuple(range(20, 30 + number))
        said, heard = (40 + iteration, 41), (50, 51 + number, 52)
        text = Text((*opening, *said, *heard))
        found.append(
            Episode((
                EpisodeTurn(TextPrefix(text, len(opening)), Text(said), 0.0),
                EpisodeTurn(TextPrefix(text, len(text.ids)), Text((60 + number, 5)), worth),
            ))
        )  # fmt: skip
    return found


def holding(played: Sequence[Episode]) -> ReplayBuffer:
    buffer = ReplayBuffer(1000, 1.0, len(played))
    buffer.add(played)
    return buffer


def weights(policy: Any) -> Tensor:
    return torch.cat([each.detach().reshape(-1).clone() for each in policy.parameters()])


@pytest.mark.parametrize(
    ("algorithm", "scale", "expected", "within"),
    [
        ("grpo", "none", DEVIATIONS, 1e-6),
        # TRL adds 1e-4 to the standard deviation, which is 9.27361850.
        ("grpo", "group", SCALED, 2e-5),
        ("rloo", "none", LEFT_OUT, 1e-5),
    ],
)
def test_advantages_by_hand(
    algorithm: str, scale: str, expected: list[float], within: float, folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """As TRL computes them in a step of ours, in the order of the episodes."""
    _, learns = learner(folder, algorithm=algorithm, scale_rewards=scale)
    trainer, seen = learns._trainer, []
    made = trainer._generate_and_score_completions

    def overheard(inputs: Any) -> Any:
        found = made(inputs)
        seen.append(found["advantages"].tolist())
        return found

    monkeypatch.setattr(trainer, "_generate_and_score_completions", overheard)
    learns.learn(ACTOR, 0, holding(episodes()))
    assert seen == [pytest.approx(expected, abs=within)]


@pytest.mark.parametrize("micro_batch", [1, 4])
@pytest.mark.parametrize("algorithm", ["grpo", "rloo"])
def test_a_step_is_of_the_replies_alone(algorithm: str, micro_batch: int, folder: Path) -> None:
    """It moves the weights as a step of ours does from prompts and replies, where no token of the
    environment has a log-probability; with all tokens behind the first prompt it would not."""
    policy, learns = learner(folder, micro_batch, algorithm=algorithm)
    before = weights(policy)
    told = learns.learn(ACTOR, 0, holding(episodes()))
    assert told["left_out"] == 0
    moved = weights(policy) - before
    ours = _moved_by_hand(folder, algorithm, whole=False)
    assert told["grad_norm"] == pytest.approx(ours[1], rel=1e-4)
    assert torch.nn.functional.cosine_similarity(moved, ours[0], dim=0) > 0.9999
    wrong = _moved_by_hand(folder, algorithm, whole=True)
    assert abs(told["grad_norm"] / wrong[1] - 1) > 0.01


def _moved_by_hand(folder: Path, algorithm: str, *, whole: bool) -> tuple[Tensor, float]:
    """By Adam's first step on replies, or on all that follows the first prompt; and the gradient's
    norm."""
    policy = load_model(folder).eval()
    policy.set_attn_implementation("sdpa")
    before = weights(policy)
    advantages = DEVIATIONS if algorithm == "grpo" else LEFT_OUT
    rows, factors = [], []
    for better, one in zip(advantages, episodes(), strict=True):
        first, last = one.turns[0], one.turns[-1]
        pairs = [(turn.state.ids, turn.reply.ids) for turn in one.turns]
        if whole:
            text = (*last.state.ids, *last.reply.ids)
            pairs = [(first.state.ids, text[first.state.length :])]
        tokens = sum(len(reply) for _, reply in pairs)
        rows += pairs
        factors += [better / tokens if algorithm == "grpo" else better] * len(pairs)

    def loss(log_probs: Tensor, mask: Tensor, part: Sequence[int]) -> Tensor:
        weighted = torch.tensor(factors)[[*part]] * (log_probs * mask).sum(dim=1)
        return -weighted.sum() / 4 * (len(rows) / len(part))

    _, norm = actor_step(
        policy, torch.optim.Adam(policy.parameters(), lr=1e-3), rows, loss, micro_batch=64, clip=0
    )
    return weights(policy) - before, norm


@pytest.mark.parametrize("algorithm", ["grpo", "rloo"])
def test_weights_and_moments_are_all_that_goes_on(
    algorithm: str, folder: Path, tmp_path: Path
) -> None:
    """Three iterations, and two with a third by another learner, end with the same bits; several
    minibatches and passes, and a penalty towards the start, among them."""
    told = {
        "algorithm": algorithm, "updates": 4, "minibatches": 2, "beta": 0.05,
        "scale_rewards": "batch", "normalise_advantages": True, "max_grad_norm": 1.0,
    }  # fmt: skip
    policy, whole = learner(folder, 2, **told)
    numbers = [whole.learn(ACTOR, n, holding(episodes(n))) for n in range(3)]
    _, first = learner(folder, 2, **told)
    for n in range(2):
        first.learn(ACTOR, n, holding(episodes(n)))
    write_learner(tmp_path / "state", first)
    other, second = learner(folder, 2, **told)
    read_learner(tmp_path / "state", second)
    assert second.learn(ACTOR, 2, holding(episodes(2))) == numbers[2]
    assert torch.equal(weights(other), weights(policy))
    assert all(map(math.isfinite, numbers[2].values()))


def test_what_is_published_of_a_model_stays_as_it_was(folder: Path) -> None:
    """Trainers write special tokens into configs; a run that was resumed would differ by them."""
    policy, learns = learner(folder)
    plain = load_model(folder)
    learns.learn(ACTOR, 0, holding(episodes()))
    assert policy.config.to_dict() == plain.config.to_dict()
    assert policy.generation_config.to_dict() == plain.generation_config.to_dict()
    assert not policy.training


def test_an_episode_without_turns_counts_in_its_group(folder: Path) -> None:
    policy, learns = learner(folder)
    before = weights(policy)
    told = learns.learn(ACTOR, 0, holding([*episodes()[:3], Episode(())]))
    assert math.isfinite(told["loss"])
    assert not torch.equal(weights(policy), before)


def test_other_numbers_of_episodes_are_refused(folder: Path) -> None:
    _, learns = learner(folder)
    with pytest.raises(ValueError, match="4 rollouts, and 3 were played"):
        learns.learn(ACTOR, 0, holding(episodes()[:3]))
