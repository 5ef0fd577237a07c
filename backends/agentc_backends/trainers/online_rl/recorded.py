"""Recorded episodes (rows of Trajectories) -> rows with the tokens of their turns, as a run that
plays writes them, so that offline RL learns from what online RL does.

Texts become tokens as in supervised training: each reply behind what its policy was shown.
Neighbours: `played.py` reads such rows; `data/chat/rows.py` says what was shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agentc_backends.agents.common.failures import FatalError
from agentc_backends.data.chat.rows import in_parts, trained_turns
from agentc_backends.data.chat.tokens import Encoder
from agentc_backends.trainers.online_rl.acting import Said
from agentc_backends.trainers.online_rl.played import with_turns

Row: TypeAlias = Mapping[str, Any]
RewardKind: TypeAlias = Literal["sum", "terminal", "latest", "max"]
_CLOSE = 1e-6


@dataclass(slots=True)
class Recording:
    """The rows that are learnt from, and how many episodes were not: those that ended in an error,
    those whose policy had forgotten turns (which of them it saw at which turn is not recorded), and
    those without a reply, or with one of no token."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    errors_left_out: int = 0
    forgotten_left_out: int = 0
    wordless_left_out: int = 0


def recorded(rows: Sequence[Row], encoder: Encoder, kind: RewardKind, context: int) -> Recording:
    """The turns of all rows, in their order. `kind` says how rewards of steps make an episode's.
    Raises FatalError where they do not make it so, for a turn that is longer than the model's
    `context`, and where no episode is left; FormatError for what the chat format cannot express."""
    found = Recording()
    for row in rows:
        if row["end"] == "error":
            found.errors_left_out += 1
        elif row.get("forgotten"):
            found.forgotten_left_out += 1
        else:
            said = _said(row, encoder)
            if not said or not all(one.reply for one in said):
                found.wordless_left_out += 1
                continue
            _check(row, said, kind, context)
            found.rows.append(with_turns(row, said, kind))
    if not found.rows:
        raise FatalError(
            f"no episode to learn from: of {len(rows)}, {found.errors_left_out} ended in an "
            f"infrastructure error, {found.forgotten_left_out} had turns that their policy no "
            f"longer saw, and {found.wordless_left_out} hold no reply, or an empty one"
        )
    return found


def _said(row: Row, encoder: Encoder) -> list[Said]:
    """Prompt and reply of each turn, in tokens."""
    found = []
    for messages, turns in in_parts(row, trained_turns(row, "after_prompt")):
        rows = encoder.encode_turns(messages, turns)
        for place, turn in enumerate(sorted(turns)):
            encoded = rows[place if len(rows) > 1 else 0]
            first = encoded.first_of(turn)
            reply = tuple(
                token
                for token, of in zip(encoded.ids[first:], encoded.turns[first:], strict=True)
                if of == turn
            )
            cut = bool(messages[turn].get("cut"))
            found.append(Said(tuple(encoded.ids[:first]), reply, cut))
    return found


def _check(row: Row, said: Sequence[Said], kind: RewardKind, context: int) -> None:
    longest = max(len(one.prompt) + len(one.reply) for one in said)
    if longest > context:
        raise FatalError(
            f"a turn of episode {row['id']} has {longest} tokens with its prompt, and the model "
            f"reads {context}; take a model with a longer context, or shorter episodes"
        )
    rewards = row["rewards"]
    # A reply without an action may have cost what no step says.
    if row["invalid"] or not rewards:
        return
    whole = {"sum": math.fsum(rewards), "max": max(rewards)}.get(kind, rewards[-1])
    if not math.isclose(whole, row["reward"], abs_tol=_CLOSE):
        raise FatalError(
            f"the reward of episode {row['id']} is {row['reward']:g}, and by `rewards: {kind}` its "
            f"turns make it {whole:g}; set `rewards` to what its environment does "
            "(sum, terminal, latest or max)"
        )
