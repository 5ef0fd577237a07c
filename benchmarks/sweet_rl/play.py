"""Episodes on invented tasks: what the human says, when an episode ends, what it scores.

An answer is read by its form and never run. Neighbours: `speaker.py` writes the agent's replies.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from agentc_backends.environments.colbench.house_prices import (
    PricedTask,
    expert,
    question,
    source,
)
from benchmarks.sweet_rl.speaker import Conversation, Speaker

ROUNDS = 4
MARKER = "I WANT TO ANSWER:"
_ANSWER = re.compile(
    re.escape(MARKER)
    + r"\ndef (\w+)\(kind, n\):\n    return n \* "
    + r"\{((?:\"\w+\": \d+(?:, \"\w+\": \d+)*)?)\}\.get\(kind, 1\)"
)


@dataclass(slots=True)
class Episode:
    """One dialogue. `score` is the share of tests passed, None until it ends; `told` are the prices
    that the human named; `formed` says whether it ended with an answer in the right form."""

    task: PricedTask
    messages: list[dict[str, str]]
    told: dict[str, int] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)
    score: float | None = None
    formed: bool = False

    def copy(self) -> Episode:
        """The same point of the dialogue, to be played on from."""
        return Episode(
            self.task, list(self.messages), dict(self.told), list(self.kinds), self.score
        )


def opening(task: PricedTask) -> Episode:
    """An episode that waits for the agent's first reply."""
    return Episode(task, [{"role": "user", "content": task.description}])


def step(episode: Episode, text: str) -> str:
    """Take one reply of the agent. Returns its sort: `useful` (a question about a price that was
    not told), `useless` (any other question) or `answer`."""
    episode.messages.append({"role": "assistant", "content": text})
    replies = len(episode.messages) // 2
    if text.startswith(MARKER) or replies == ROUNDS:
        prices = _read(episode.task.function, text)
        episode.formed = prices is not None
        episode.score = 0.0 if prices is None else score(episode.task, prices)
        episode.kinds.append("answer")
        return "answer"
    words = set(re.findall(r"\w+", text))
    fact = next((f for f in episode.task.facts if words.issuperset(f.keys)), None)
    asked = fact.keys[0] if fact else ""
    useful = asked in episode.task.prices and asked not in episode.told
    if useful:
        episode.told[asked] = episode.task.prices[asked]
    sentence = fact.sentence if fact else "I do not know."
    last = " Answer now." if replies == ROUNDS - 1 else ""
    episode.messages.append({"role": "user", "content": sentence + last})
    episode.kinds.append("useful" if useful else "useless")
    return episode.kinds[-1]


def score(task: PricedTask, prices: dict[str, int]) -> float:
    """Share of the task's calls that a function with these prices gets right."""
    right = [n * prices.get(kind, 1) == n * task.prices.get(kind, 1) for kind, n in task.calls]
    return sum(right) / len(right)


def _read(function: str, text: str) -> dict[str, int] | None:
    """The prices in an answer of the right form, else None."""
    found = _ANSWER.fullmatch(text)
    if found is None or found[1] != function:
        return None
    return {kind: int(price) for kind, price in re.findall(r'"(\w+)": (\d+)', found[2])}


def expert_episode(task: PricedTask, rng: Random) -> Episode:
    """A careless expert's dialogue: its questions, then what it was told as code."""
    episode = opening(task)
    for text in expert(task, rng, questions=ROUNDS - 1):
        step(episode, text)
    step(episode, f"{MARKER}\n{source(task.function, episode.told)}")
    return episode


def informed_episode(task: PricedTask) -> Episode:
    """The dialogue of one who asks for the priced kinds alone, and answers what is right."""
    episode = opening(task)
    for kind in task.prices:
        step(episode, question(kind))
    step(episode, f"{MARKER}\n{source(task.function, episode.told)}")
    return episode


def play(speaker: Speaker, episodes: Sequence[Episode], seed: int) -> None:
    """Play all episodes to their end, each from where it is."""
    generator = speaker.generator(seed)
    while waiting := [episode for episode in episodes if episode.score is None]:
        texts = speaker.replies([episode.messages for episode in waiting], generator)
        for episode, text in zip(waiting, texts, strict=True):
            step(episode, text)


def before_turn(episode: Episode, turn: int) -> Conversation:
    """What the agent saw before its reply number `turn` (from 0)."""
    return episode.messages[: 2 * turn + 1]


def resumed(episode: Episode, turn: int) -> Episode:
    """A fresh episode of the same task that waits for reply number `turn`."""
    fresh = opening(episode.task)
    for message in episode.messages[1 : 2 * turn + 1 : 2]:
        step(fresh, message["content"])
    return fresh


@dataclass(frozen=True, slots=True)
class Measured:
    """Means over episodes; `tasks` are the mean tests passed of each task, for pairing."""

    tests: float
    perfect: float
    told: float
    questions: float
    useless: float
    formed: float
    tasks: tuple[float, ...]


def measure(speaker: Speaker, tasks: Sequence[PricedTask], attempts: int, seed: int) -> Measured:
    """Play every task `attempts` times. `useless` is a share of questions, `told` of prices."""
    episodes = [opening(task) for task in tasks for _ in range(attempts)]
    play(speaker, episodes, seed)
    scores = [episode.score or 0.0 for episode in episodes]
    asked = [kind for episode in episodes for kind in episode.kinds if kind != "answer"]
    count = len(episodes)
    return Measured(
        tests=sum(scores) / count,
        perfect=sum(each == 1.0 for each in scores) / count,
        told=sum(len(e.told) / len(e.task.prices) for e in episodes) / count,
        questions=len(asked) / count,
        useless=asked.count("useless") / max(len(asked), 1),
        formed=sum(episode.formed for episode in episodes) / count,
        tasks=tuple(sum(scores[i : i + attempts]) / attempts for i in range(0, count, attempts)),
    )
