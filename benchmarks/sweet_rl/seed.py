"""One seed of the experiment: its own tasks, weights, collection, critics, ranking and updates.

Results are appended to `results.jsonl` of the folder; `tables.py` reads them.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from agentc_backends.environments.colbench.house_prices import PricedTask, task
from benchmarks.sweet_rl.arms import ARMS, CRITIC, Arm
from benchmarks.sweet_rl.critic import (
    Turn,
    advantages,
    agreement,
    draw_turns,
    monte_carlo,
    train_critic,
    trajectory_pairs,
    with_hidden,
)
from benchmarks.sweet_rl.learning import BATCH, Update, imitate, prefer
from benchmarks.sweet_rl.pairs import actor_rows, random_scores, ranked_pairs
from benchmarks.sweet_rl.play import (
    Episode,
    expert_episode,
    informed_episode,
    measure,
    opening,
    play,
)
from benchmarks.sweet_rl.speaker import Conversation, Speaker, load_speaker, new_speaker

ATTEMPTS = 4
_COLLECTED = 300
_TURNS, _CANDIDATES = 300, 12
_CHECKED, _CHECK_CANDIDATES = 80, 8
_MEASURED = 200
_START_LR = 2e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`steps` of the first training, 16 dialogues each, in stretches with a schedule of their own;
    `custom` as in `house_prices.task`. One first policy serves all customs, since the careless
    expert knows none. `told` is the share of its dialogues whose expert has read the reference,
    where a critic will have it."""

    folder: Path
    seed: int
    steps: tuple[int, ...]
    custom: float
    critic: Update = CRITIC
    told: float = 0.0

    def tasks(self, split: str, count: int) -> list[PricedTask]:
        """The first tasks of a split of this seed."""
        return [task(f"{split}{self.seed}", index, self.custom) for index in range(count)]

    @property
    def first(self) -> Path:
        """The first policy's file."""
        return self.folder / f"{self.seed}-start-{self.policy}.pt"

    @property
    def policy(self) -> str:
        """How the first policy was trained, in one word."""
        told = f"-told-{self.told}" if self.told else ""
        return "-".join(map(str, self.steps)) + told

    def path(self, name: str) -> Path:
        """A file of this seed, custom and first policy."""
        return self.folder / f"{self.seed}-{self.custom}-{self.policy}-{name}.pkl"

    def record(self, kind: str, began: float, **values: Any) -> None:
        """Append one result, with the CPU seconds since `began`."""
        cpu = time.process_time() - began
        made = {"seed": self.seed, "custom": self.custom, "first": self.policy}
        row = {"kind": kind, **made, "cpu": cpu, **values}
        with (self.folder / "results.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        shown = {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}
        print({k: v for k, v in shown.items() if k not in ("tasks", "states")}, flush=True)


def start(settings: Settings) -> None:
    """Train this seed's policy on careless dialogues unless it is there, measure it, and collect
    attempts with it."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    if not settings.first.exists():
        _train(settings)
    speaker = load_speaker(settings.first)
    began = time.process_time()
    _measure(settings, speaker, "start", "validation", began)
    began = time.process_time()
    episodes = [
        opening(each) for each in settings.tasks("train", _COLLECTED) for _ in range(ATTEMPTS)
    ]
    play(speaker, episodes, settings.seed)
    pickle_to(settings.path("collected"), episodes)
    pairs = trajectory_pairs(episodes, ATTEMPTS)
    settings.record("collected", began, episodes=len(episodes), pairs=len(pairs))


def _train(settings: Settings) -> None:
    began = time.process_time()
    rng = Random(settings.seed)
    dialogues = [
        _told_dialogue(settings.seed, index)
        if settings.told and rng.random() < settings.told
        else expert_episode(each, rng).messages
        for index, each in enumerate(settings.tasks("expert", sum(settings.steps) * BATCH))
    ]
    before = replace(settings, steps=settings.steps[:-1])
    if not before.steps:
        speaker = new_speaker(dialogues[:2000], settings.seed)
    else:
        if not before.first.exists():
            _train(before)
        speaker = load_speaker(before.first)
    fresh = dialogues[sum(before.steps) * BATCH :]
    rows = [speaker.row(each, normalisation="none") for each in fresh]
    losses = imitate(speaker, rows, _START_LR, settings.seed)
    speaker.save(settings.first)
    tail = losses[-50:]
    settings.record("trained", began, loss=sum(tail) / len(tail), steps=settings.steps[-1])


def _told_dialogue(seed: int, index: int) -> Conversation:
    """Of an expert who sees the reference and asks for what it prices at once, on a task of a place
    without customs, so that it teaches none."""
    episode = informed_episode(task(f"told{seed}", index, custom=0.0))
    return with_hidden(episode, episode.messages)


def check_critics(settings: Settings, sizes: Sequence[int]) -> None:
    """Hold critics with and without hidden information against Monte Carlo on held-out turns."""
    policy = load_speaker(settings.first)
    began = time.process_time()

    def held_out() -> Any:
        episodes = [opening(each) for each in settings.tasks("validation", _CHECKED)]
        play(policy, episodes, settings.seed + 1)
        turns = draw_turns(policy, episodes, _CHECKED, _CHECK_CANDIDATES, settings.seed)
        return turns, monte_carlo(policy, turns, settings.seed)

    turns, orders = kept(settings.path("check"), held_out)
    settings.record("monte carlo", began, pairs=len(orders))
    for size in sizes:
        for hidden in (True, False):
            for trained in (False, True) if size == sizes[0] else (True,):
                began = time.process_time()
                critic = _critic(settings, policy, size, hidden) if trained else policy
                right = agreement(orders, advantages(critic, policy, turns, hidden=hidden))
                states: dict[int, list[tuple[float, str, str]]] = {}
                for order, each in zip(orders, right, strict=True):
                    states.setdefault(order.turn, []).append((each, *order.sorts))
                settings.record(
                    "critic",
                    began,
                    hidden=hidden,
                    pairs=size if trained else 0,
                    nll=settings.critic.nll_weight,
                    epochs=settings.critic.epochs,
                    right=sum(right) / len(right),
                    states=states,
                )


def compare_updates(settings: Settings, names: Sequence[str], size: int, split: str) -> None:
    """Train and measure the arms of that name (all without names)."""
    policy = load_speaker(settings.first)
    episodes: list[Episode] = unpickle(settings.path("collected"))

    def drawn() -> list[Turn]:
        return draw_turns(policy, episodes, _TURNS, _CANDIDATES, settings.seed + 7)

    turns = kept(settings.path("turns"), drawn)
    if not names or "start" in names:
        _measure(settings, policy, "start", split, time.process_time())
    scores = {}
    for arm in [each for each in ARMS if not names or each.name in names]:
        began = time.process_time()
        if arm.ranking not in scores:
            if arm.ranking == "random":
                scores[arm.ranking] = random_scores(turns, settings.seed)
            else:
                hidden = arm.ranking == "hidden"
                critic = _critic(settings, policy, size, hidden)
                scores[arm.ranking] = advantages(critic, policy, turns, hidden=hidden)
            settings.record("ranked", began, ranking=arm.ranking)
            began = time.process_time()
        actor = _updated(policy, turns, scores[arm.ranking], arm, settings.seed)
        _measure(settings, actor, arm.name, split, began, size)


def _updated(policy: Speaker, turns: Sequence[Turn], scores: Any, arm: Arm, seed: int) -> Speaker:
    pairs = ranked_pairs(turns, scores, seed=seed, alike=arm.alike)
    actor = policy.copy()
    prefer(actor, actor_rows(policy, pairs, arm.normalisation), arm.update, seed)
    return actor


def _critic(settings: Settings, policy: Speaker, size: int, hidden: bool) -> Speaker:
    """The critic of that many pairs; both see the same ones."""
    episodes = unpickle(settings.path("collected"))
    pairs = trajectory_pairs(episodes, ATTEMPTS)
    chosen = Random(settings.seed).sample(pairs, min(size, len(pairs)))
    return train_critic(policy, chosen, settings.critic, hidden=hidden, seed=settings.seed)


def _measure(
    settings: Settings, speaker: Speaker, arm: str, split: str, began: float, size: int = 0
) -> None:
    trained = time.process_time() - began
    found = asdict(measure(speaker, settings.tasks(split, _MEASURED), 2, settings.seed + 11))
    # No critic is behind the first policy.
    critic = (size, settings.critic.nll_weight, settings.critic.epochs) if size else (0, 0, 0)
    settings.record("arm", began, arm=arm, split=split, critic=critic, training=trained, **found)


def kept(path: Path, make: Callable[[], Any]) -> Any:
    """What `make` gives, from the file when it is there."""
    if not path.exists():
        pickle_to(path, make())
    return unpickle(path)


def pickle_to(path: Path, value: Any) -> None:
    """Write what this program alone reads again."""
    path.write_bytes(pickle.dumps(value))


def unpickle(path: Path) -> Any:
    """Read what `pickle_to` wrote."""
    return pickle.loads(path.read_bytes())
