"""ArCHer and online filtered BC on ten-object Twenty Questions, from one start each seed:
`python -m benchmarks.archer_objects --seeds 1 2 3` in an interpreter with torch.

The parts that `online_rl` is made of, around the game itself (table oracle, strict judge). A policy
of two layers imitates 2,000 games, three tenths of them an expert's; then 20 iterations of 48
games. Settings are those that the first experiments came to (notes/archer_measured.md): what
is not the paper's there is said there. Printed: the mean return of 500 games before and after, with
their standard error, and how the critic's advantages go with Monte Carlo's before the policy's
first step.
"""

from __future__ import annotations

import argparse
import copy
import random
import re
import statistics
import time
from collections.abc import Sequence
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from agentc_backends.environments.guessing_games.environment import (
    GuessingEnvironment,
    GuessingShared,
)
from agentc_backends.environments.guessing_games.games import GAMES
from agentc_backends.environments.guessing_games.oracles import TableOracle
from agentc_backends.environments.guessing_games.settings import GuessingSettings
from agentc_backends.trainers.online_rl.critic import Critic, Utterances, critic_step, target_copy
from agentc_backends.trainers.online_rl.filtered_bc import best_share
from agentc_backends.trainers.online_rl.learning import actor_step, reply_log_probs
from agentc_backends.trainers.online_rl.losses import advantage, policy_gradient_loss, to_go
from agentc_backends.trainers.online_rl.readers import CausalReader, Text, TextPrefix
from agentc_backends.trainers.online_rl.replay import Episode, EpisodeTurn, key_of, utterances
from agentc_backends.trainers.online_rl.sampling import Decode, DrawRequest, Sampler
from agentc_backends.trainers.online_rl.settings import CriticPhase

QUESTIONS, DISCOUNT, NEWEST = 20, 0.95, 240
START, NO, YES, STOP = 0, 1, 2, 3
DECODE = Decode(max_tokens=12, ends=frozenset({STOP}))
SETTINGS = GuessingSettings(
    game="twenty_questions", unknown="no", reward="per_question", splits="together",
    objects="subset", questions=QUESTIONS,
)  # fmt: skip
_GAME = GAMES["twenty_questions"]
WORLD = GuessingShared(_GAME, SETTINGS, TableOracle(_GAME.load(), "no"), {"kind": "table"})
SECRETS = [*WORLD.secrets]


def pieces(question: str) -> list[str]:
    return re.findall(r"[A-Za-z0-9'-]+|[^\w\s]", question)


_ASKED = [*WORLD.table.questions, *map(WORLD.table.guess_of, SECRETS)]
WORDS = ["", "", "", "?", *sorted({word for each in _ASKED for word in pieces(each)} - {"?"})]
IDS = {word: place for place, word in enumerate(WORDS) if word}


class Game:
    """One game in tokens: a question, then its answer, each behind the others."""

    def __init__(self, secret: str) -> None:
        self.secret, self.won, self.over = secret, False, False
        self.ids, self.states, self.said, self.rewards = [START], [1], [], []  # type: ignore[var-annotated]
        self._world = GuessingEnvironment(WORLD)
        self._world.reset(secret)

    def ask(self, ids: Sequence[int]) -> None:
        words = " ".join(WORDS[each] for each in ids if each != STOP)
        seen, reward, self.over, _, _ = self._world.step(words.replace(" '", "'") + "?")
        self.won = self.over and reward == 0
        self.said.append(tuple(ids))
        self.rewards.append(reward)
        self.ids += [*ids, YES if seen.startswith("Yes") else NO]
        self.states.append(len(self.ids))

    def played(self) -> Episode:
        text = Text(tuple(self.ids))
        turns = zip(self.states, self.said, self.rewards, strict=False)
        return Episode(
            tuple(
                EpisodeTurn(TextPrefix(text, at), reply_text(said), reward)
                for at, said, reward in turns
            )
        )


_REPLIES: dict[tuple[int, ...], Text] = {}


def reply_text(ids: tuple[int, ...]) -> Text:
    """Equal replies are one text, which the critic reads once, behind a token of its own."""
    return _REPLIES.setdefault(ids, Text((START, *ids)))


def go_on(sampler: Sampler, games: Sequence[Game], *names: Any) -> None:
    """Play all of them to their ends, a turn of each at a time."""
    while open_ones := [(n, game) for n, game in enumerate(games) if not game.over]:
        asked = [
            DrawRequest(game.ids, (key_of(*names, n, len(game.said)), 0)) for n, game in open_ones
        ]
        for (_, game), reply in zip(open_ones, sampler.draw(asked, DECODE), strict=True):
            game.ask(reply.ids)


def imitated_games(seed: int) -> list[Game]:
    """An expert's and others' of readable questions, a third of them guesses."""
    rng = random.Random(seed)
    table = WORLD.table
    answers = {
        each: sum(table.answer(secret, each) == "Yes." for secret in SECRETS)
        for each in table.questions
    }
    useful = [each for each, count in answers.items() if 0 < count < len(SECRETS)]
    random.Random(1).shuffle(useful)
    games = []
    for _ in range(2000):
        game = Game(rng.choice(SECRETS))
        plan: list[str] = []
        if rng.random() < 0.3:
            steps = WORLD.expert.plan(game.secret, rng.randrange(1, 1000))
            plan = [step.action for step in steps]
        while not game.over:
            if plan:
                question = plan.pop(0)
            elif rng.random() < 0.35:
                question = table.guess_of(rng.choice(SECRETS))
            else:
                question = rng.choice(useful[:24])
            game.ask([IDS[word] for word in pieces(question)])
        games.append(game)
    return games


def imitate(
    policy: Any, optimiser: Any, games: Sequence[Game], rng: random.Random, steps: int, clip: float,
    peak: float | None = None,
) -> None:  # fmt: skip
    """Whole games at once: of their tokens the questions' are trained."""
    for step in range(steps):
        if peak is not None:
            for group in optimiser.param_groups:
                group["lr"] = peak * min(1, (step + 1) / 20) * (1 - 0.9 * step / steps)
        batch = sorted((rng.choice(games) for _ in range(32)), key=lambda game: len(game.ids))
        asked = [_question_places(game) for game in batch]

        def loss(
            log_probs: torch.Tensor, mask: torch.Tensor, part: Sequence[int], of: Any = asked
        ) -> torch.Tensor:
            trained = torch.zeros_like(mask)
            for row, places in enumerate(of[place] for place in part):
                trained[row, places] = 1
            return -(log_probs * trained).sum(dim=1).mean()

        rows = [(game.ids[:1], game.ids[1:]) for game in batch]
        actor_step(policy, optimiser, rows, loss, micro_batch=16, clip=clip)


def _question_places(game: Game) -> list[int]:
    """Of the tokens behind the first."""
    turns = zip(game.states, game.said, strict=False)
    return [at - 1 + n for at, said in turns for n in range(len(said))]


def learn_values(
    critic: Critic, target: Critic, optimiser: Any, kept: Sequence[Episode], rng: random.Random
) -> None:
    """V is held to the target critic's Q of the stored reply."""
    settings = CriticPhase(
        discount=DISCOUNT, target_rate=0.3, value_target="data", max_grad_norm=1.0
    )
    newest = kept[-NEWEST:]
    for _ in range(40):
        rows = [row for _ in range(16) for row in utterances(rng.choice(newest), DISCOUNT)]
        batch = Utterances(
            states=[row.state for row in rows],
            replies=[row.reply for row in rows],
            rewards=torch.tensor([row.reward for row in rows]),
            following=[row.following for row in rows],
            to_go=torch.tensor([row.to_go for row in rows]),
        )
        critic_step(critic, target, optimiser, batch, settings)


def improve(
    policy: Any, start: Any, optimiser: Any, critic: Critic, sampler: Sampler,
    kept: Sequence[Episode], rng: random.Random, names: tuple[Any, ...], penalty: float,
) -> None:  # fmt: skip
    """Three steps on a fresh reply in every state of 32 games; their advantages, less a share of
    how far the policy has left its start, less their mean."""
    for step in range(3):
        chosen = [rng.choice(kept[-NEWEST:]) for _ in range(32)]
        states = [row.state for one in chosen for row in utterances(one, DISCOUNT)]
        keys = [key_of(*names, step, place) for place in range(len(states))]
        asked = [DrawRequest(at.ids, (key, 0)) for at, key in zip(states, keys, strict=True)]
        replies = [each.ids for each in sampler.draw(asked, DECODE)]
        rows = [(at.ids, said) for at, said in zip(states, replies, strict=True)]
        better = advantages(critic, states, replies)
        with torch.no_grad():
            now, mask = reply_log_probs(policy, rows)
            then, _ = reply_log_probs(start, rows)
        better = better - penalty * ((now - then) * mask).sum(dim=1)
        better = better - better.mean()

        def loss(
            log_probs: torch.Tensor,
            mask: torch.Tensor,
            part: Sequence[int],
            of: torch.Tensor = better,
        ) -> torch.Tensor:
            return policy_gradient_loss(log_probs, mask, of[[*part]])

        actor_step(policy, optimiser, rows, loss, micro_batch=128, clip=10.0)


def advantages(
    critic: Critic, states: Sequence[TextPrefix], replies: Sequence[tuple[int, ...]]
) -> torch.Tensor:
    texts = [reply_text(ids) for ids in replies]
    said = [TextPrefix(text, len(text.ids)) for text in texts]
    with torch.no_grad():
        features = critic.read([*states, *said])
        seen, spoken = features.split([len(states), len(said)])
        return advantage(critic.q(seen, spoken), critic.v(seen))


def advantages_agree(critic: Critic, sampler: Sampler, seed: int) -> float:
    """Correlation with Monte Carlo: three replies in each of 40 states, each played on 16 times
    over the secrets that fit the answers so far; both less their mean in the state."""
    rng = random.Random(seed)
    games = [Game(rng.choice(SECRETS)) for _ in range(40)]
    go_on(sampler, games, seed, "evaluate", 1)
    places = [rng.randrange(len(game.said)) for game in games]
    states = [
        TextPrefix(Text(tuple(game.ids)), game.states[at])
        for game, at in zip(games, places, strict=True)
    ]
    found: list[float] = []
    true: list[float] = []
    branches: list[Game] = []
    replies: list[list[tuple[int, ...]]] = []
    for number, (game, at, state) in enumerate(zip(games, places, states, strict=True)):
        keys = [(key_of(seed, "evaluate", 2, number, each), 0) for each in range(3)]
        drawn = sampler.draw([DrawRequest(state.ids, key) for key in keys], DECODE)
        replies.append([each.ids for each in drawn])
        fitting = [secret for secret in SECRETS if _fits(secret, game, at)]
        for reply in replies[-1]:
            for turn in range(16):
                branch = _replayed(fitting[turn % len(fitting)], game, at)
                branch.ask(reply)
                branches.append(branch)
    go_on(sampler, branches, seed, "evaluate", 3)
    rest = iter(branches)
    for at, state, three in zip(places, states, replies, strict=True):
        worths = [
            statistics.fmean(to_go(next(rest).rewards[at:], DISCOUNT)[0] for _ in range(16))
            for _ in three
        ]
        said = advantages(critic, [state] * 3, three).tolist()
        found += [each - statistics.fmean(said) for each in said]
        true += [each - statistics.fmean(worths) for each in worths]
    return statistics.correlation(found, true)


def _replayed(secret: str, game: Game, turns: int) -> Game:
    branch = Game(secret)
    for ids in game.said[:turns]:
        branch.ask(ids)
    return branch


def _fits(secret: str, game: Game, turns: int) -> bool:
    branch = _replayed(secret, game, turns)
    return branch.ids == game.ids[: game.states[turns]] and not branch.over


def evaluate(sampler: Sampler, seed: int) -> tuple[float, float]:
    """Mean return of 500 games, 50 of each object, and its standard error."""
    games = [Game(SECRETS[n % len(SECRETS)]) for n in range(500)]
    go_on(sampler, games, seed, "evaluate", 0)
    returns = [sum(game.rewards) for game in games]
    return statistics.fmean(returns), statistics.stdev(returns) / len(returns) ** 0.5


def learn(method: str, start: Any, seed: int, iterations: int) -> tuple[Any, float | None]:
    """The policy after so many iterations of 48 games, and how advantages went (ArCHer)."""
    torch.manual_seed(seed)
    policy = copy.deepcopy(start)
    sampler = Sampler(policy)
    critic = Critic(CausalReader(copy.deepcopy(start.model), 64), start=-8.0)
    target = target_copy(critic)
    learner = torch.optim.Adam(critic.parameters(), lr=1e-3)
    actor = torch.optim.Adam(policy.parameters(), lr=2e-4 if method == "archer" else 3e-4)
    rng = random.Random(seed)
    games: list[Game] = []
    kept: list[Episode] = []
    agreement = None
    for iteration in range(iterations):
        fresh = [Game(rng.choice(SECRETS)) for _ in range(48)]
        go_on(sampler, fresh, seed, "act", iteration)
        games += fresh
        kept += [game.played() for game in fresh]
        if method == "archer":
            learn_values(critic, target, learner, kept, rng)
            if iteration == 7:
                agreement = advantages_agree(critic, sampler, seed)
                learner.param_groups[0]["lr"] = 7e-4
            if iteration >= 8:
                names = (seed, "actor", iteration)
                improve(policy, start, actor, critic, sampler, kept, rng, names, 0.1)
        elif iteration >= 4:
            _, best = best_share([one.total for one in kept], 0.3)
            imitate(policy, actor, [games[number] for number in best], rng, 24, 1.0)
    return policy, agreement


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.archer_objects", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--methods", nargs="+", default=["archer", "filtered_bc"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("| method | seed | start | end | advantage, correlation | CPU s |")
    print("|---|---|---|---|---|---|")
    for seed in options.seeds:
        torch.manual_seed(seed)
        start = LlamaForCausalLM(LlamaConfig(
            vocab_size=len(WORDS), hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=256, max_position_embeddings=320,
        )).eval()  # fmt: skip
        optimiser = torch.optim.AdamW(start.parameters(), lr=2e-3, weight_decay=0.01)
        imitate(start, optimiser, imitated_games(seed), random.Random(seed), 400, 1.0, 2e-3)
        before, error = evaluate(Sampler(start), seed)
        for method in options.methods:
            began = time.process_time()
            policy, agreement = learn(method, start, seed, options.iterations)
            took = time.process_time() - began
            after, noise = evaluate(Sampler(policy), seed)
            cells = [
                method,
                str(seed),
                f"{before:.2f} +- {error:.2f}",
                f"{after:.2f} +- {noise:.2f}",
            ]
            cells += ["" if agreement is None else f"{agreement:.2f}"]
            cells += [f"{took:.0f}"]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
