"""Episodes -> rows for a trainer that reads one text for each: all that was said in it, and which
tokens the policy said.

A token is trained only where the policy drew it: behind the very tokens that it was shown.
Neighbours: `replay.py` has the episodes, `trl_learner.py` hands the rows to TRL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentc_backends.trainers.online_rl.replay import Played


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """The tokens of an episode, whether the policy drew each, and what the episode was worth.
    `left_out` are the replies that later turns show in other tokens than those that were drawn
    (a text can be cut into tokens in several ways): nothing of them is trained."""

    tokens: tuple[int, ...]
    drawn: tuple[bool, ...]
    left_out: int
    worth: float


@dataclass(frozen=True, slots=True)
class EpisodeBatch:
    """Rows cut at one place for all, before which no token was drawn: prompts of one length need no
    padding before them, where it would shift the positions of what follows."""

    prompts: list[list[int]]
    completions: list[list[int]]
    drawn: list[list[int]]


def episode_row(played: Played) -> EpisodeRow:
    """Of one episode: what its last turn was shown, and its reply. One without turns is empty."""
    if not played.turns:
        return EpisodeRow((), (), 0, played.total)
    last = played.turns[-1]
    tokens = (*last.state.ids, *last.reply.ids)
    drawn, left_out = [False] * len(tokens), 0
    for turn in played.turns:
        start, end = turn.state.length, turn.state.length + len(turn.reply.ids)
        if tokens[:start] == turn.state.ids and tokens[start:end] == turn.reply.ids:
            drawn[start:end] = [True] * (end - start)
        else:
            left_out += 1
    return EpisodeRow(tokens, tuple(drawn), left_out, played.total)


def episode_batch(rows: Sequence[EpisodeRow], filler: int) -> EpisodeBatch:
    """All rows, in their order. One of which nothing was drawn is `filler` tokens that nothing is
    learnt from: its worth counts in its group all the same."""
    place = min((row.drawn.index(True) for row in rows if any(row.drawn)), default=1)
    nothing = (filler,) * (place + 1), (False,) * (place + 1)
    whole = [(row.tokens, row.drawn) if any(row.drawn) else nothing for row in rows]
    return EpisodeBatch(
        prompts=[[*tokens[:place]] for tokens, _ in whole],
        completions=[[*tokens[place:]] for tokens, _ in whole],
        drawn=[[*map(int, drawn[place:])] for _, drawn in whole],
    )
