"""The step-level critic: trajectory pairs, ranking of candidates, and its check by Monte Carlo.

`hidden` says whether the reference stands before the description. Neighbour: `learning.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

from benchmarks.sweet_rl.learning import Update, prefer
from benchmarks.sweet_rl.play import Episode, before_turn, play, resumed, step
from benchmarks.sweet_rl.speaker import Conversation, Row, Speaker

CONTINUATIONS = 8
"""Monte-Carlo episodes from each candidate."""
_APART = 0.25
"""Means closer than this say nothing about an order."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a collected episode and what the policy might have said there (texts repeat)."""

    episode: Episode
    turn: int
    candidates: tuple[str, ...]

    def before(self) -> Conversation:
        """What the policy saw."""
        return before_turn(self.episode, self.turn)


def with_hidden(episode: Episode, messages: Conversation) -> Conversation:
    """The conversation as a critic with training-time information reads it."""
    prefix = f"In light that the final answer is: {episode.task.reference}.\n"
    return [{"role": "user", "content": prefix + messages[0]["content"]}, *messages[1:]]


def trajectory_pairs(episodes: Sequence[Episode], attempts: int) -> list[tuple[Episode, Episode]]:
    """Of each task its first perfect attempt against every lower one (the released code's rule)."""
    pairs = []
    for first in range(0, len(episodes), attempts):
        group = episodes[first : first + attempts]
        best = next((e for e in group if e.score == 1.0), None)
        if best is not None:
            pairs += [(best, e) for e in group if (e.score or 0.0) < 1.0]
    return pairs


def train_critic(
    policy: Speaker,
    pairs: Sequence[tuple[Episode, Episode]],
    update: Update,
    *,
    hidden: bool,
    seed: int,
) -> Speaker:
    """A critic from the policy's weights, by the paper's eq. 2 (per-turn means)."""

    def row(episode: Episode) -> Row:
        messages = with_hidden(episode, episode.messages) if hidden else episode.messages
        return policy.row(messages, normalisation="turn")

    critic = policy.copy()
    prefer(critic, [(row(a), row(b)) for a, b in pairs], update, seed)
    return critic


def advantages(
    critic: Speaker, policy: Speaker, turns: Sequence[Turn], *, hidden: bool
) -> list[dict[str, float]]:
    """Of each turn its distinct candidates' advantages: mean log-prob under the critic minus that
    under the policy, which sees the history alone (the paper's eq. 3)."""
    places = [(i, text) for i, turn in enumerate(turns) for text in dict.fromkeys(turn.candidates)]
    ours, theirs = [], []
    for index, text in places:
        reply = {"role": "assistant", "content": text}
        said = [*turns[index].before(), reply]
        seen = with_hidden(turns[index].episode, said) if hidden else said
        ours.append(critic.row(seen, normalisation="trajectory", last=True))
        theirs.append(policy.row(said, normalisation="trajectory", last=True))
    found: list[dict[str, float]] = [{} for _ in turns]
    for (index, text), a, b in zip(places, critic.scores(ours), policy.scores(theirs), strict=True):
        found[index][text] = a - b
    return found


def draw_turns(
    policy: Speaker, episodes: Sequence[Episode], count: int, candidates: int, seed: int
) -> list[Turn]:
    """One random turn of each of `count` episodes, with sampled candidates."""
    rng = Random(seed)
    chosen = rng.sample(range(len(episodes)), count)
    places = [(episodes[i], rng.randrange(len(episodes[i].kinds))) for i in chosen]
    asked = [before_turn(e, turn) for e, turn in places for _ in range(candidates)]
    texts = policy.replies(asked, policy.generator(seed))
    return [
        Turn(e, turn, tuple(texts[i * candidates : (i + 1) * candidates]))
        for i, (e, turn) in enumerate(places)
    ]


@dataclass(frozen=True, slots=True)
class Order:
    """Two candidates of one turn that Monte Carlo tells apart. `sorts` are theirs, better first."""

    turn: int
    better: str
    worse: str
    sorts: tuple[str, str]


def monte_carlo(policy: Speaker, turns: Sequence[Turn], seed: int) -> list[Order]:
    """Play on from every distinct candidate and list the pairs whose means differ."""
    tails: list[Episode] = []
    sorts: dict[tuple[int, str], str] = {}
    spans: dict[tuple[int, str], range] = {}
    for index, turn in enumerate(turns):
        for text in dict.fromkeys(turn.candidates):
            start = resumed(turn.episode, turn.turn)
            sorts[index, text] = step(start, text)
            repeats = CONTINUATIONS if start.score is None else 1
            spans[index, text] = range(len(tails), len(tails) + repeats)
            tails += [start.copy() for _ in range(repeats)]
    play(policy, tails, seed)
    means = {key: sum(tails[i].score or 0.0 for i in s) / len(s) for key, s in spans.items()}
    orders = []
    for index, turn in enumerate(turns):
        for a, b in combinations(dict.fromkeys(turn.candidates), 2):
            gap = means[index, a] - means[index, b]
            if abs(gap) >= _APART:
                better, worse = (a, b) if gap > 0 else (b, a)
                kinds = (sorts[index, better], sorts[index, worse])
                orders.append(Order(index, better, worse, kinds))
    return orders


def agreement(orders: Sequence[Order], scores: Sequence[Mapping[str, float]]) -> list[float]:
    """Of each pair 1 if the critic orders it as Monte Carlo does, 0 if not, 0.5 for a tie."""
    gaps = (scores[o.turn][o.better] - scores[o.turn][o.worse] for o in orders)
    return [0.5 if gap == 0 else float(gap > 0) for gap in gaps]
