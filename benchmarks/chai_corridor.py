"""CHAI on the corridor, whose exact values are known:
`python -m benchmarks.chai_corridor --seeds 1 2 3` in an interpreter with torch.

The policy of `archer_corridor.py`, which stays as it is, and the best of its replies by a critic
that learns from what was said so. Printed: the value of the first room before and after (of a best
of several the chances are those of 1,000 drawn replies in each room), and the most that ranking can
make of the policy's replies: right before looking, looking before left.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from tests.support.corridor_values import DISCOUNT, policy_values
from tests.torch.online_rl.corridor import outcomes
from transformers import LlamaForCausalLM

from agentc_backends.environments.corridor.rules import ACTIONS, ROOMS
from agentc_backends.trainers.online_rl.critic import (
    BestOf,
    Critic,
    Utterances,
    critic_step,
    new_critic,
    target_copy,
)
from agentc_backends.trainers.online_rl.sampling import DrawRequest, Sampler
from agentc_backends.trainers.online_rl.settings import CriticPhase
from benchmarks.archer_corridor import (
    DECODE,
    LONGEST,
    STATES,
    Turn,
    action_of,
    chances,
    fresh_replies,
    imitate,
    shape,
    state,
    value_of,
    whole,
)

DRAWS = 1000


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.chai_corridor", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--updates", type=int, default=20, help="critic steps in an iteration")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--candidates", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| seed | start | after each iteration | ranked without error | CPU s |")
    print("|---|---|---|---|---|")
    for seed in options.seeds:
        began = time.process_time()
        start, values, most = learn(seed, options)
        curve = ", ".join(f"{value:.2f}" for value in values)
        took = time.process_time() - began
        print(f"| {seed} | {start:.2f} | {curve} | {most:.2f} | {took:.0f} |", flush=True)


def learn(
    seed: int, options: argparse.Namespace, episodes: int = 16
) -> tuple[float, list[float], float]:
    """Values of the first room: of the policy alone, of the best of several after each iteration,
    and of the best by the true order."""
    torch.manual_seed(seed)
    policy = LlamaForCausalLM(shape(32, 2)).eval()
    imitate(policy, seed)
    sampler = Sampler(policy)
    critic = new_critic(policy, None, 0.0)
    target = target_copy(critic)
    learner = torch.optim.Adam(critic.parameters(), lr=1e-3)
    choice = BestOf(target, options.candidates)
    turns: list[Turn] = []
    values = []
    for iteration in range(options.iterations):
        turns += play(sampler, choice, seed, iteration, episodes)
        rng = random.Random(f"{seed}/{iteration}")
        learn_values(critic, target, learner, sampler, turns, rng, options)
        values.append(value_of_best(sampler, choice))
    return value_of(policy), values, value_of_true_best(policy, options.candidates)


def play(sampler: Sampler, choice: BestOf, seed: int, iteration: int, number: int) -> list[Turn]:
    """Turns of episodes from the first room, all at once."""
    found: list[Turn] = []
    rooms: list[int | None] = [0] * number
    for step in range(LONGEST):
        going = [(index, room) for index, room in enumerate(rooms) if room is not None]
        asked, size = [], choice.candidates
        for index, room in going:
            place = ((seed * 1000 + iteration) * 1000 + index) * 100 + step
            asked += [DrawRequest(STATES[room].ids, (place, draw)) for draw in range(size)]
        drawn = [one.ids for one in sampler.draw(asked, DECODE)]
        for turn, (index, room) in enumerate(going):
            part = drawn[turn * size : (turn + 1) * size]
            reply = part[choice.pick(STATES[room].ids, part)]
            options = outcomes(room, action_of(reply))
            weights = [each.chance for each in options]
            (outcome,) = random.Random(asked[turn * size].key[0]).choices(options, weights)
            found.append(Turn(room, reply, outcome.reward, outcome.following))
            rooms[index] = outcome.following
    return found


def learn_values(
    critic: Critic, target: Critic, optimiser: Any, sampler: Sampler, turns: Sequence[Turn],
    rng: random.Random, options: argparse.Namespace,
) -> None:  # fmt: skip
    """V is held to the best of fresh candidates."""
    size = options.candidates
    batches = [[rng.choice(turns) for _ in range(options.batch)] for _ in range(options.updates)]
    asked = [turn.room for batch in batches for turn in batch for _ in range(size)]
    fresh = fresh_replies(sampler, asked, rng)
    settings = CriticPhase(discount=DISCOUNT, target_rate=0.1, max_grad_norm=10)
    for number, batch in enumerate(batches):
        rewards = torch.tensor([turn.reward for turn in batch])
        part = fresh[number * len(batch) * size : (number + 1) * len(batch) * size]
        critic_step(critic, target, optimiser, Utterances(
            states=[state(turn.room) for turn in batch],
            replies=[whole(turn.reply) for turn in batch],
            rewards=rewards, to_go=rewards,
            following=[None if turn.following is None else state(turn.following) for turn in batch],
            drawn=[whole(reply) for reply in part],
        ), settings)  # fmt: skip


def value_of_best(sampler: Sampler, choice: BestOf) -> float:
    """Of a policy that says the best of several; what is no action looks."""
    found = []
    for room in range(len(ROOMS)):
        asked = [DrawRequest(STATES[room].ids, (draw, room)) for draw in range(DRAWS)]
        counts = Counter(one.ids for one in sampler.draw(asked, DECODE))
        found.append(chances_of_best(choice, room, counts))
    return policy_values(found).v[0]


def value_of_true_best(policy: Any, candidates: int) -> float:
    """Of the best of several by what actions are worth when one goes right ever after."""
    ranked = []
    for left, right, look in chances(policy):
        total = left + right + look
        no_right = ((left + look) / total) ** candidates
        all_left = (left / total) ** candidates
        ranked.append([all_left, 1 - no_right, no_right - all_left])
    return policy_values(ranked).v[0]


def chances_of_best(choice: BestOf, room: int, counts: Counter[tuple[int, ...]]) -> list[float]:
    """Of each action, where replies are as likely as they were often: the best of several is one
    of the lowest so many exactly where all of them are."""
    replies = [*counts]
    ordered: list[tuple[int, ...]] = []
    while replies:
        ordered.append(replies.pop(choice.pick(STATES[room].ids, replies)))
    found, below = [0.0] * len(ACTIONS), 0
    for reply in reversed(ordered):
        up_to = below + counts[reply]
        share = (up_to / DRAWS) ** choice.candidates - (below / DRAWS) ** choice.candidates
        found[action_of(reply)] += share
        below = up_to
    return found


if __name__ == "__main__":
    main()
