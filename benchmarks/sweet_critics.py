"""`python -m benchmarks.sweet_critics --seeds 0 1 2`: specs/sweet_rl/tiny.yaml's critics, measured.

On held-out turns, how often each orders candidates as Monte Carlo does, which plays on from every
candidate with the policy that all critics begin as. Reads what `benchmarks.sweet_seeds` has left in
the store; runs where torch is (`.agentc/torch-tests/bin/python`), and prints one table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from agentc_backends.agents.common.critic_scores import CriticNotes, read_critic
from agentc_backends.agents.rank.job_value_head import HeadScorer
from agentc_backends.data.chat.hidden_texts import with_privileged
from agentc_backends.data.chat.tokens import load_encoder
from agentc_backends.data.models.checkpoint import load_model
from agentc_backends.environments.colbench.house_prices import PricedTask, task
from agentc_backends.environments.colbench.tasks import task_id
from agentc_backends.job_device import visible_device
from benchmarks.sweet_rl.critic import Order, Turn, agreement, draw_turns, monte_carlo
from benchmarks.sweet_rl.play import Episode, opening, play
from benchmarks.sweet_rl.speaker import Conversation, Speaker
from benchmarks.sweet_rl.tables import interval

ROOT = Path(__file__).resolve().parents[1]
SPEC = ROOT / "specs" / "sweet_rl" / "tiny.yaml"
CRITICS = ("critic", "critic_without_hidden", "critic_summed")
HEAD = "critic_head"
BASELINE = "critic_without_hidden"
UNTRAINED = "untrained, with hidden text"
_HELD_OUT = slice(8600, 8900)  # the spec's split `validation`
_CANDIDATES = 8

Scores = Sequence[Mapping[str, float]]
"""Of each turn its candidates' worth, by text."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What one seed's critics say of the same turns: by turn, the share of its pairs in order."""

    pairs: int
    shares: Mapping[str, Mapping[int, float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with the table on standard output."""
    parser = argparse.ArgumentParser(prog="benchmarks.sweet_critics", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--turns", type=int, default=160, help="one of each episode")
    parser.add_argument("--scale", metavar="NAME", help="one of the spec's `scales:`")
    parser.add_argument("--store", type=Path, default=ROOT / ".agentc" / "store")
    parser.add_argument("--agentc", type=Path, default=ROOT / ".venv" / "bin" / "agentc")
    options = parser.parse_args(arguments)
    found = {}
    for seed in options.seeds:
        data = folders(options.agentc, options.store, options.scale, seed)
        found[seed] = check(data, seed, options.turns)
        print(f"seed {seed}: {found[seed].pairs} pairs", file=sys.stderr, flush=True)
    print("\n".join(table(found)))
    return 0


def folders(agentc: Path, store: Path, scale: str | None, seed: int) -> dict[str, Path]:
    """The data of each job that has run, by its id."""
    words = [str(agentc), "plan", str(SPEC), "-p", f"seed={seed}", "--store", str(store), "--json"]
    words += [] if scale is None else ["--scale", scale]
    plan = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    return {
        job["id"]: store / "objects" / job["object"] / "data"
        for job in plan["jobs"]
        if job["state"] == "cached"
    }


def check(data: Mapping[str, Path], seed: int, count: int) -> Checked:
    """Hold every critic of a seed against Monte Carlo, on the same turns."""
    start = _speaker(data["start"])
    episodes = [opening(each) for each in held_out_tasks()[:count]]
    play(start, episodes, seed + 1)
    turns = draw_turns(start, episodes, len(episodes), _CANDIDATES, seed)
    orders = monte_carlo(start, turns, seed)
    found = {}
    for name in CRITICS:
        notes = read_critic(data[name])
        shown, summed = _shown(notes), notes.normalisation == "none"
        before = log_probs(start, turns, _history, summed=summed)
        critics = {name: _speaker(data[name])}
        if name == CRITICS[0]:
            critics[UNTRAINED] = start
        for called, critic in critics.items():
            found[called] = _less(log_probs(critic, turns, shown, summed=summed), before)
    found[HEAD] = head_values(data[HEAD], turns)
    return Checked(len(orders), {name: by_turn(orders, each) for name, each in found.items()})


def held_out_tasks() -> list[PricedTask]:
    """The tasks of the spec's validation split, as its environment counts them."""
    different: dict[str, PricedTask] = {}
    index = 0
    while len(different) < _HELD_OUT.stop:
        drawn = task("0", index)
        different.setdefault(task_id(drawn.description, drawn.reference), drawn)
        index += 1
    return list(islice(different.values(), _HELD_OUT.start, _HELD_OUT.stop))


Shown = Callable[[Episode, Conversation], Conversation]


def log_probs(
    speaker: Speaker, turns: Sequence[Turn], shown: Shown, *, summed: bool
) -> list[dict[str, float]]:
    """Of each candidate the mean log-probability of its tokens, or their sum."""
    places = [(i, text) for i, turn in enumerate(turns) for text in dict.fromkeys(turn.candidates)]
    rows = []
    for index, text in places:
        said = [*turns[index].before(), {"role": "assistant", "content": text}]
        seen = shown(turns[index].episode, said)
        rows.append(speaker.row(seen, normalisation="none" if summed else "trajectory", last=True))
    found: list[dict[str, float]] = [{} for _ in turns]
    for (index, text), value in zip(places, speaker.scores(rows), strict=True):
        found[index][text] = value
    return found


def head_values(folder: Path, turns: Sequence[Turn]) -> list[dict[str, float]]:
    """What a critic's head says of each candidate."""
    notes = read_critic(folder, head=True)
    scorer, shown = HeadScorer(folder, notes.pooling or "mean", visible_device()), _shown(notes)
    found = []
    for turn in turns:
        texts = list(dict.fromkeys(turn.candidates))
        before = shown(turn.episode, turn.before())
        prompt = scorer.encoder.encode_prompt(before)
        replies = []
        for text in texts:
            row = scorer.encoder.encode([*before, {"role": "assistant", "content": text}])
            end = max(place for place, of in enumerate(row.turns) if of >= 0) + 1
            replies.append(row.ids[len(prompt) : end])
        values = scorer.values(prompt, replies)
        found.append(dict(zip(texts, values, strict=True)))
    return found


def by_turn(orders: Sequence[Order], scores: Scores) -> dict[int, float]:
    """Of each turn whose candidates Monte Carlo tells apart, the share of pairs in its order."""
    found: dict[int, list[float]] = {}
    for order, right in zip(orders, agreement(orders, scores), strict=True):
        found.setdefault(order.turn, []).append(right)
    return {turn: sum(each) / len(each) for turn, each in found.items()}


def table(checked: Mapping[int, Checked]) -> list[str]:
    """Markdown lines; differences are paired by turn."""
    pairs = sum(each.pairs for each in checked.values())
    turns = sum(len(each.shares[BASELINE]) for each in checked.values())
    some = "1 seed" if len(checked) == 1 else f"{len(checked)} seeds"
    lines = [
        f"{some}, {pairs} pairs of candidates at {turns} held-out turns; 95 % "
        "intervals, bootstrap over seeds and turns.",
        "",
        f"| critic | pairs in Monte Carlo's order | difference from `{BASELINE}` | of each seed |",
        "|---|---|---|---|",
    ]
    for name in (UNTRAINED, *CRITICS, HEAD):
        ours = {seed: each.shares[name] for seed, each in checked.items()}
        base = {seed: each.shares[BASELINE] for seed, each in checked.items()}
        apart = {
            seed: [each[turn] - base[seed][turn] for turn in each] for seed, each in ours.items()
        }
        share = "{:.3f} [{:.3f}, {:.3f}]".format(
            *interval({seed: list(each.values()) for seed, each in ours.items()})
        )
        more = "-" if name == BASELINE else "{:+.3f} [{:+.3f}, {:+.3f}]".format(*interval(apart))
        seeds = ", ".join(f"{sum(each.values()) / len(each):.3f}" for each in ours.values())
        lines.append(f"| `{name}` | {share} | {more} | {seeds} |")
    return lines


def _speaker(folder: Path) -> Speaker:
    return Speaker(load_model(folder).eval(), load_encoder(folder))


def _history(episode: Episode, said: Conversation) -> Conversation:
    del episode
    return said


def _shown(notes: CriticNotes) -> Shown:
    """What a critic reads: the conversation, behind hidden text if it was trained so."""
    template = notes.template
    if template is None:
        return _history
    return lambda episode, said: with_privileged(said, template, episode.task.reference)


def _less(ours: Scores, theirs: Scores) -> list[dict[str, float]]:
    return [
        {text: value - b[text] for text, value in a.items()}
        for a, b in zip(ours, theirs, strict=True)
    ]


if __name__ == "__main__":
    sys.exit(main())
