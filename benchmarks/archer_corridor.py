"""ArCHer, online filtered BC and PPO on the corridor, whose exact values are known:
`python -m benchmarks.archer_corridor --seeds 1 2 3 4 5` in an interpreter with torch.

The parts that `online_rl` is made of (critic, sampler, actor; of PPO the learner itself) around a
world of tables; a policy of two layers starts from imitating the behaviour (.2, .5, .3). Printed:
the exact value of the first room under the policy, the trajectories until it passes 3.0 (the best
is 3.2088), and how the critic's advantages go with the true ones before the policy's first step.
`centred` is not the paper's (notes/archer_measured.md).
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tests.support.corridor_values import DISCOUNT, ExactValues, policy_values
from tests.torch.online_rl.corridor import POLICY, outcomes
from transformers import LlamaConfig, LlamaForCausalLM, LlamaModel

from agentc.kinds.reinforcement import ActorSteps
from agentc_backends.environments.corridor.rules import ACTIONS, ROOMS
from agentc_backends.trainers.online_rl.critic import Critic, Utterances, critic_step, target_copy
from agentc_backends.trainers.online_rl.filtered_bc import best_share
from agentc_backends.trainers.online_rl.learning import ACTOR, Learning, actor_step, reply_log_probs
from agentc_backends.trainers.online_rl.losses import (
    advantage,
    imitation_loss,
    policy_gradient_loss,
    to_go,
)
from agentc_backends.trainers.online_rl.ppo import PpoLearner
from agentc_backends.trainers.online_rl.readers import CausalReader, Text, TextPrefix
from agentc_backends.trainers.online_rl.replay import Episode, EpisodeTurn, ReplayBuffer
from agentc_backends.trainers.online_rl.sampling import Decode, DrawRequest, Sampler
from agentc_backends.trainers.online_rl.settings import CriticPhase, PpoRules

LONGEST = 60
STOP, LINE = 0, 1
WORDS = (*dict.fromkeys(" ".join((*ROOMS, *ACTIONS)).split()),)
DECODE = Decode(max_tokens=3, ends=frozenset({STOP}))
METHODS = ("archer", "archer, centred", "filtered_bc", "ppo")


def ids_of(text: str) -> tuple[int, ...]:
    return tuple(2 + WORDS.index(word) for word in text.split())


STATES = [Text((*ids_of(room), LINE)) for room in ROOMS]
REPLIES = [(*ids_of(action), STOP) for action in ACTIONS]


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance of an episode."""

    room: int
    reply: tuple[int, ...]
    reward: float
    following: int | None


def action_of(reply: tuple[int, ...]) -> int:
    """What is no action looks."""
    return REPLIES.index(reply) if reply in REPLIES else ACTIONS.index("look")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.archer_corridor", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| method | seed | start | end | trajectories to 3.0 | advantage, correlation | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for seed in options.seeds:
        for method in options.methods:
            began = time.process_time()
            start, end, reached, correlation = learn(method, seed, options.iterations)
            cells = [method, seed, f"{start:.2f}", f"{end:.3f}", reached or "never"]
            cells += ["" if correlation is None else f"{correlation:.2f}"]
            cells += [f"{time.process_time() - began:.0f}"]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


def learn(
    method: str, seed: int, iterations: int, warmup: int = 4, episodes: int = 16
) -> tuple[float, float, int | None, float | None]:
    """Exact values of the first room before and after, trajectories until it passed 3, and the
    correlation of advantages at the end of the warm-up (ArCHer)."""
    torch.manual_seed(seed)
    policy = LlamaForCausalLM(shape(32, 2)).eval()
    imitate(policy, seed)
    sampler = Sampler(policy)
    critic = Critic(CausalReader(LlamaModel(shape(64, 1)).eval(), 64))
    target = target_copy(critic)
    learner = torch.optim.Adam(critic.parameters(), lr=1e-3)
    actor = torch.optim.Adam(policy.parameters(), lr=2e-3)
    ppo = ppo_learner(policy, sampler, seed) if method == "ppo" else None
    start, reached, correlation = value_of(policy), None, None
    kept: list[list[Turn]] = []
    for iteration in range(iterations):
        kept += play(sampler, seed, iteration, episodes)
        rng = random.Random(f"{seed}/{iteration}")
        if ppo is not None:
            learn_by_ppo(ppo, kept[-episodes:], iteration, warmup // 2)
        elif method.startswith("archer"):
            turns = [turn for episode in kept for turn in episode]
            learn_values(critic, target, learner, sampler, turns, rng, 40)
            if iteration == warmup - 1:
                correlation = advantages_agree(critic, policy)
            if iteration >= warmup:
                improve(policy, actor, critic, sampler, turns, rng, method.endswith("centred"))
        elif iteration >= warmup:
            returns = [to_go([turn.reward for turn in episode], 1.0)[0] for episode in kept]
            _, best = best_share(returns, 0.1)
            copy_best(policy, actor, [turn for number in best for turn in kept[number]], rng)
        if reached is None and value_of(policy) >= 3.0:
            reached = (iteration + 1) * episodes
    return start, value_of(policy), reached, correlation


def shape(width: int, layers: int) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=2 + len(WORDS), hidden_size=width, num_hidden_layers=layers,
        num_attention_heads=4, intermediate_size=4 * width, max_position_embeddings=32,
    )  # fmt: skip


def imitate(policy: Any, seed: int) -> None:
    """The behaviour that the policy starts from."""
    rng = random.Random(seed)
    optimiser = torch.optim.Adam(policy.parameters(), lr=2e-3)
    for _ in range(200):
        rooms = [rng.randrange(4) for _ in range(64)]
        rows = [(STATES[room].ids, REPLIES[rng.choices(range(3), POLICY)[0]]) for room in rooms]
        actor_step(
            policy, optimiser, rows, lambda log_probs, mask, _: imitation_loss(log_probs, mask),
            micro_batch=64, clip=1.0,
        )  # fmt: skip


def play(sampler: Sampler, seed: int, iteration: int, number: int) -> list[list[Turn]]:
    """Episodes from the first room, all at once; chance by seed, iteration, episode and turn."""
    episodes: list[list[Turn]] = [[] for _ in range(number)]
    rooms: list[int | None] = [0] * number
    for step in range(LONGEST):
        going = [index for index, room in enumerate(rooms) if room is not None]
        if not going:
            break
        asked = []
        for index in going:
            place = ((seed * 1000 + iteration) * 1000 + index) * 100 + step
            asked.append(DrawRequest(STATES[rooms[index] or 0].ids, (place, 0)))
        for index, said, one in zip(going, sampler.draw(asked, DECODE), asked, strict=True):
            room = rooms[index] or 0
            options = outcomes(room, action_of(said.ids))
            chance = random.Random(one.key[0]).choices(options, [each.chance for each in options])
            episodes[index].append(Turn(room, said.ids, chance[0].reward, chance[0].following))
            rooms[index] = chance[0].following
    return episodes


def learn_values(
    critic: Critic, target: Critic, optimiser: Any, sampler: Sampler, turns: Sequence[Turn],
    rng: random.Random, steps: int,
) -> None:  # fmt: skip
    """All replies that V is held to are drawn at once: the policy does not change meanwhile."""
    batches = [[rng.choice(turns) for _ in range(128)] for _ in range(steps)]
    fresh = fresh_replies(sampler, [turn.room for batch in batches for turn in batch], rng)
    settings = CriticPhase(discount=DISCOUNT, target_rate=0.1, max_grad_norm=10)
    for number, batch in enumerate(batches):
        rewards = torch.tensor([turn.reward for turn in batch])
        critic_step(critic, target, optimiser, Utterances(
            states=[state(turn.room) for turn in batch],
            replies=[whole(turn.reply) for turn in batch],
            rewards=rewards, to_go=rewards,
            following=[None if turn.following is None else state(turn.following) for turn in batch],
            drawn=[whole(reply) for reply in fresh[number * 128 : (number + 1) * 128]],
        ), settings)  # fmt: skip


def improve(
    policy: Any, optimiser: Any, critic: Critic, sampler: Sampler, turns: Sequence[Turn],
    rng: random.Random, centred: bool,
) -> None:  # fmt: skip
    """Eight steps on fresh replies in states that were seen, weighted by their advantages, or by
    what these are above their mean."""
    for _ in range(8):
        rooms = [rng.choice(turns).room for _ in range(64)]
        replies = fresh_replies(sampler, rooms, rng)
        better = advantages(critic, rooms, replies)
        better = better - better.mean() if centred else better
        rows = [(STATES[room].ids, reply) for room, reply in zip(rooms, replies, strict=True)]

        def loss(
            log_probs: torch.Tensor,
            mask: torch.Tensor,
            part: Sequence[int],
            all_of: torch.Tensor = better,
        ) -> torch.Tensor:
            return policy_gradient_loss(log_probs, mask, all_of[[*part]])

        actor_step(policy, optimiser, rows, loss, micro_batch=64, clip=1.0)


def copy_best(policy: Any, optimiser: Any, turns: Sequence[Turn], rng: random.Random) -> None:
    for _ in range(8):
        chosen = [rng.choice(turns) for _ in range(64)]
        rows = [(STATES[turn.room].ids, turn.reply) for turn in chosen]
        actor_step(
            policy, optimiser, rows, lambda log_probs, mask, _: imitation_loss(log_probs, mask),
            micro_batch=64, clip=1.0,
        )  # fmt: skip


def ppo_learner(policy: Any, sampler: Sampler, seed: int) -> PpoLearner:
    learning = Learning(
        policy=policy, tokenizer=None, sampler=sampler, decode=DECODE, seed=seed, micro_batch=64
    )
    values = CriticPhase(
        lr=3e-3, batch=16, hidden=None, start=0.0, max_grad_norm=1.0, discount=DISCOUNT
    )
    rules = PpoRules(
        clip=0.2, value_clip=None, gae_lambda=0.95, epochs=8, entropy_coef=0.0, normalise=True,
        by="utterances",
    )  # fmt: skip
    return PpoLearner(learning, values, ActorSteps(lr=2e-3, batch=64, max_grad_norm=1.0), rules)


def learn_by_ppo(
    ppo: PpoLearner, fresh: Sequence[Sequence[Turn]], iteration: int, warmup: int
) -> None:
    buffer = ReplayBuffer(None, DISCOUNT)
    buffer.add([
        Episode(tuple(EpisodeTurn(state(at.room), Text(at.reply), at.reward) for at in episode))
        for episode in fresh
    ])  # fmt: skip
    for phase in ppo.phases:
        if phase != ACTOR or iteration >= warmup:
            ppo.learn(phase, iteration, buffer)


def fresh_replies(
    sampler: Sampler, rooms: Sequence[int], rng: random.Random
) -> list[tuple[int, ...]]:
    asked = [DrawRequest(STATES[room].ids, (rng.getrandbits(62), 0)) for room in rooms]
    return [each.ids for each in sampler.draw(asked, DECODE)]


def state(room: int) -> TextPrefix:
    return TextPrefix(STATES[room], len(STATES[room].ids))


_SAID: dict[tuple[int, ...], TextPrefix] = {}


def whole(reply: tuple[int, ...]) -> TextPrefix:
    """Equal replies are one text, so that the critic reads them once."""
    return _SAID.setdefault(reply, TextPrefix(Text(reply), len(reply)))


def advantages(
    critic: Critic, rooms: Sequence[int], replies: Sequence[tuple[int, ...]]
) -> torch.Tensor:
    with torch.no_grad():
        features = critic.read([*map(state, rooms), *map(whole, replies)])
        states, said = features.split([len(rooms), len(replies)])
        return advantage(critic.q(states, said), critic.v(states))


def chances(policy: Any) -> list[list[float]]:
    """Of each action in each room, exactly; what is no action looks."""
    rows = [(room.ids, reply) for room in STATES for reply in REPLIES]
    with torch.no_grad():
        log_probs, mask = reply_log_probs(policy, rows)
    found = (log_probs * mask).sum(dim=1).exp().reshape(4, 3)
    found[:, ACTIONS.index("look")] += 1 - found.sum(dim=1)
    return [[float(each) for each in row] for row in found]


def exact(policy: Any) -> ExactValues:
    """Of the policy as it is, what is no action counted as looking."""
    return policy_values([[each / sum(row) for each in row] for row in chances(policy)])


def value_of(policy: Any) -> float:
    return exact(policy).v[0]


def advantages_agree(critic: Critic, policy: Any) -> float:
    """Correlation over the twelve pairs of room and action."""
    known = exact(policy)
    rooms = [room for room in range(4) for _ in range(3)]
    found = advantages(critic, rooms, [*REPLIES] * 4).tolist()
    true = [known.q[room][place % 3] - known.v[room] for place, room in enumerate(rooms)]
    return statistics.correlation(found, true)


if __name__ == "__main__":
    main()
