"""Rows of episodes <-> what is learnt from: the tokens of each turn, and what each turn earned.

A row holds the tokens of its turns by what each prompt adds to the one before it, so that it grows
with the episode and not with its square. Neighbours: `acting.py` notes the tokens, `replay.py`
keeps the episodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentc_backends.trainers.online_rl.acting import Said
from agentc_backends.trainers.online_rl.reading import Text, TextPrefix
from agentc_backends.trainers.online_rl.replay import Played, PlayedTurn

TOKENS = "turn_tokens"
"""Of a row: for each turn `kept` (so many tokens of the prompt before), `added` behind them,
`reply`, and whether that was `cut` at its limit."""
EARNED = "turn_rewards"
"""Of a row: what each turn earned; their sum is the episode's reward."""


def with_turns(row: Mapping[str, Any], said: Sequence[Said], kind: str) -> dict[str, Any]:
    """A row of trajectories with its turns. Raises ValueError where turns and tokens do not go
    together."""
    if len(said) != row["turns"]:
        raise ValueError(f"{row['id']}: {row['turns']} turns, and tokens of {len(said)}")
    return {**row, TOKENS: coded(said), EARNED: turn_rewards(row, kind)}


def without_turns(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of trajectories again: of what is only looked at, nothing is learnt."""
    return {name: value for name, value in row.items() if name not in (TOKENS, EARNED)}


def coded(said: Iterable[Said]) -> list[dict[str, Any]]:
    """The turns of an episode, each prompt by what it adds."""
    found: list[dict[str, Any]] = []
    before: tuple[int, ...] = ()
    for one in said:
        kept = _common(before, one.prompt)
        found.append({"kept": kept, "added": one.prompt[kept:], "reply": one.reply, "cut": one.cut})
        before = one.prompt
    return found


def decoded(turns: Iterable[Mapping[str, Any]]) -> list[Said]:
    """The turns again."""
    found: list[Said] = []
    before: tuple[int, ...] = ()
    for turn in turns:
        before = (*before[: turn["kept"]], *turn["added"])
        found.append(Said(before, tuple(turn["reply"]), turn["cut"]))
    return found


def turn_rewards(row: Mapping[str, Any], kind: str) -> list[float]:
    """What each turn of an episode earned, so that they sum to the episode's reward. Rewards of
    steps that only say how things stand (`latest`, `max`) count by what they change; one that
    comes at the end alone (`terminal`) is the last turn's."""
    steps: list[float] = row["rewards"]
    match kind:
        case "sum":
            earned = [float(step) for step in steps]
        case "terminal":
            earned = [0.0] * len(steps)
        case _:
            earned, stood = [], 0.0
            for step in steps:
                now = max(stood, step) if kind == "max" else step
                earned.append(now - stood)
                stood = now
    if earned:  # a reply that ends the episode may have cost more than its step
        earned[-1] += row["reward"] - sum(earned)
    return earned


def played_of(row: Mapping[str, Any]) -> Played:
    """The episode of a row."""
    said = decoded(row[TOKENS])
    texts = _states([one.prompt for one in said])
    turns = zip(texts, said, row[EARNED], strict=True)
    return Played(tuple(PlayedTurn(state, Text(one.reply), earned) for state, one, earned in turns))


def _states(prompts: Sequence[tuple[int, ...]]) -> list[TextPrefix]:
    """States as prefixes of one text as far as they are: from the end on, each that the one after
    it goes on from is read with it."""
    found: list[TextPrefix] = []
    for prompt in reversed(prompts):
        text = found[-1].text if found else None
        if text is None or text.ids[: len(prompt)] != prompt:
            text = Text(prompt)
        found.append(TextPrefix(text, len(prompt)))
    return found[::-1]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    return next(place for place in range(length) if one[place] != other[place])
