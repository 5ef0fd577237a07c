"""Rows of a data set -> token rows with masks and weights; counts what is cut, left out or refused.

Every trainer uses it, so that all have one set of labels."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from agentc.kinds.training import RowLimits
from agentc.program.job import Job
from agentc_backends.data.chat.formats import NoRowsError, RowsError
from agentc_backends.data.chat.tokens import Encoded, Encoder

IGNORED = -100
"""The label of a token that is not trained."""

Row: TypeAlias = Mapping[str, Any]
Message: TypeAlias = Mapping[str, Any]

_SIDES = ("chosen", "rejected")


@dataclass(slots=True)
class RowCounts:
    """What became of the rows. `tokens` and `trained_tokens` are sums over the kept rows (over
    both sides of a pair); `truncated` rows were cut, `dropped` ones were left out. `forgotten` ones
    are kept, but their policy no longer saw all of their turns when it acted. `parted` ones hold
    replies of which only a part was seen (`raw`), or were rendered by a chat template that rewrites
    history, and became a token row for each trained turn; of pairs, also those whose earlier
    replies are trained as they were seen. `open_thoughts` are trained replies that do not close the
    thought that their prompt opens. `masked` are the dropped rows without a trained token,
    `identical` the kept pairs whose sides are the same tokens."""

    rows: int = 0
    truncated: int = 0
    dropped: int = 0
    tokens: int = 0
    trained_tokens: int = 0
    longest: int = 0
    forgotten: int = 0
    parted: int = 0
    masked: int = 0
    identical: int = 0
    open_thoughts: int = 0
    untrained: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Side:
    """One token row: `ids`, and `trained[i]` true where token i enters the loss. `turns`, where it
    was asked for: the index of the assistant message that a token is of, or -1.

    Where the chat format needs a row for each turn, a side of a pair is several rows, one behind
    the other, of which none sees another: `starts` are their first places after 0.
    """

    ids: list[int]
    trained: list[bool]
    turns: list[int] = field(default_factory=list)
    starts: tuple[int, ...] = ()

    def rows(self) -> list[Side]:
        """The rows of the side."""
        bounds = [0, *self.starts, len(self.ids)]
        return [
            Side(self.ids[a:b], self.trained[a:b], self.turns[a:b]) for a, b in pairwise(bounds)
        ]

    def positions(self) -> list[int]:
        """The place of each token in its row."""
        return [place for row in self.rows() for place in range(len(row.ids))]

    def labels(self) -> list[int]:
        """The ids, with IGNORED where they are not trained."""
        return [i if t else IGNORED for i, t in zip(self.ids, self.trained, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskRules(RowLimits):
    """`loss_on`: "all_replies", "after_prompt" or "marked" (rows), "assistant" or "completion"
    (pairs)."""

    loss_on: str


def encode_rows(
    encoder: Encoder, rows: Sequence[Row], rules: MaskRules
) -> tuple[list[Side], RowCounts]:
    """Token rows of conversations (`messages`, `prompt_length`). Raises RowsError, FormatError.

    A reply with `raw` is trained as it was generated, behind what was seen of those before it: a
    conversation that trains several turns, such ones among them, becomes a row for each turn. So
    does one whose policy saw the last observation alone (`memory`), each behind that one.
    """
    counts = RowCounts()
    kept: list[Side] = []
    for row in rows:
        parts = split_by_turns(row, trained_turns(row, rules.loss_on))
        counts.parted += len(parts) > 1
        for messages, trained in parts:
            encoded_rows = encoder.encode_turns(messages, trained)
            counts.parted += len(encoded_rows) > 1
            for encoded in encoded_rows:
                counts.open_thoughts += encoded.open_thoughts
                side = Side(encoded.ids, [turn in trained for turn in encoded.turns])
                fitted = _fit(row, (side,), rules, counts)
                if fitted is not None:
                    kept += fitted
                    counts.forgotten += bool(row.get("forgotten"))
    return kept, _checked(counts, rules)


def warn_of_forgotten(job: Job, counts: RowCounts) -> None:
    """Tell people where rows hold turns that their policy no longer saw (`on_overflow:
    drop_oldest`): the first of several processes does."""
    if counts.forgotten and os.environ.get("RANK", "0") == "0":
        job.warn(
            f"in {counts.forgotten} of {counts.rows} rows the policy no longer saw all "
            "turns when it acted (`on_overflow: drop_oldest`); the whole conversation is trained "
            "on, so that these replies are behind a context that they were not made in. "
            "`on_overflow: end`, or a longer max_model_len of the server, would avoid that"
        )


def trained_turns(row: Row, loss_on: str) -> frozenset[int]:
    """Indices of the assistant messages of a row that enter the loss."""
    first = 0 if loss_on == "all_replies" else row["prompt_length"]
    return frozenset(
        index
        for index, message in enumerate(row["messages"])
        if index >= first
        and message["role"] == "assistant"
        and (loss_on != "marked" or message.get("loss", True))
    )


def encode_pairs(
    encoder: Encoder, rows: Sequence[Row], rules: MaskRules, *, turns: bool = False
) -> tuple[list[tuple[Side, Side]], RowCounts]:
    """Token rows (chosen, rejected) of preference pairs, with their `turns` where these are asked
    for. Raises RowsError, FormatError.

    Both sides hold the whole conversation; replies inside the prompt are never trained. With
    `loss_on` "completion" everything from the first token after the prompt is: observations and
    the text that closes a turn included. The last reply of a side stands there as it was generated,
    those before it as later turns saw them (`raw`), as in the released code of SWEET-RL: one row
    of tokens cannot hold both. The `opening` of a row is a text before the first token of both.
    """
    counts = RowCounts()
    kept: list[tuple[Side, Side]] = []
    for row in rows:
        prompt = row["prompt"]
        opening = encoder.spell(row["opening"]) if "opening" in row else []
        sides = []
        for name in _SIDES:
            messages = as_generated([*prompt, *row[name]])
            if rules.loss_on == "completion":
                encoded = encoder.encode(messages)
                start = encoded.first_of(len(prompt))
                trained = [position >= start for position in range(len(encoded.ids))]
                parts = [Side(encoded.ids, trained, encoded.turns if turns else [])]
            else:
                encoded_rows = encoder.encode_turns(messages, _replies(messages, len(prompt)))
                counts.open_thoughts += sum(each.open_thoughts for each in encoded_rows)
                parts = [_side(each, len(prompt), turns) for each in encoded_rows]
            sides.append(
                join_sides([_behind(opening, part) for part in parts] if opening else parts)
            )
        fitted = _fit(row, tuple(sides), rules, counts)
        if fitted is not None:
            kept.append((fitted[0], fitted[1]))
            counts.identical += fitted[0].ids == fitted[1].ids
            raw = any("raw" in m for name in _SIDES for m in row[name][:-1])
            counts.parted += raw or any(side.starts for side in fitted)
    return kept, _checked(counts, rules)


def _behind(opening: list[int], side: Side) -> Side:
    """A side behind tokens that are not trained."""
    size = len(opening)
    turns = [-1] * size + side.turns if side.turns else []
    return Side(opening + side.ids, [False] * size + side.trained, turns)


def _replies(messages: Sequence[Message], opening: int) -> list[int]:
    places = range(opening, len(messages))
    return [index for index in places if messages[index]["role"] == "assistant"]


def _side(encoded: Encoded, opening: int, turns: bool) -> Side:
    trained = [turn >= opening for turn in encoded.turns]
    return Side(encoded.ids, trained, encoded.turns if turns else [])


def split_by_turns(
    row: Row, trained: frozenset[int]
) -> list[tuple[Sequence[Message], frozenset[int]]]:
    """Conversations, each with the turns that it trains, in which every trained reply is whole and
    stands behind what its policy saw; by the first of those turns they are in order."""
    messages: Sequence[Message] = row["messages"]
    if row.get("memory") == "last":
        return _turns_before_task(messages, row["prompt_length"], trained)
    if not any("raw" in messages[turn] for turn in trained):
        return [(messages, trained)]
    return [(as_generated(messages[: turn + 1]), frozenset({turn})) for turn in sorted(trained)]


def _turns_before_task(
    messages: Sequence[Message], opening: int, trained: frozenset[int]
) -> list[tuple[Sequence[Message], frozenset[int]]]:
    """Each trained turn behind what stands before the task and the observation that it answers.
    Trained turns of the opening (`all_replies`) are in the first one alone."""
    before = [*messages[: opening - 1]]
    replies = [turn for turn in sorted(trained) if turn >= opening]
    early = frozenset(trained.difference(replies))
    return [
        (
            as_generated([*before, messages[turn - 1], messages[turn]]),
            frozenset({opening}) | (early if turn == replies[0] else frozenset()),
        )
        for turn in replies
    ]


def as_generated(messages: Sequence[Message]) -> list[Message]:
    """A conversation whose last message is whole: in the place of what later turns see of it
    stands all that was generated, where that is more (`raw`)."""
    *before, last = messages
    return [*before, {**last, "content": last.get("raw", last["content"])}]


def _fit(
    row: Row, sides: tuple[Side, ...], rules: MaskRules, counts: RowCounts
) -> tuple[Side, ...] | None:
    """The sides of one row within max_length, or None when the row is left out."""
    name: str = row["id"]
    longest = max(len(part.ids) for side in sides for part in side.rows())
    counts.longest = max(counts.longest, longest)
    limit = rules.max_length
    if longest > limit:
        if rules.truncation == "error" and not _is_played(row):
            raise RowsError(
                f"row {name} has {longest} tokens, more than max_length {limit}; raise "
                "max_length, or set truncation to drop (leave such rows out) or right (cut them)"
            )
        if rules.truncation != "right":
            counts.dropped += 1
            return None
        counts.truncated += 1
        # Each row of a side is cut on its own, from the right.
        sides = tuple(
            join_sides(
                [Side(r.ids[:limit], r.trained[:limit], r.turns[:limit]) for r in side.rows()]
            )
            for side in sides
        )
    # The first token is never predicted, so a label there trains nothing.
    if not all(any(side.trained[1:]) for side in sides):
        if rules.truncation == "drop":
            counts.dropped += 1
            counts.masked += 1
        else:
            counts.untrained.append(name)
        return None
    counts.rows += 1
    counts.tokens += sum(len(side.ids) for side in sides)
    counts.trained_tokens += sum(sum(side.trained[1:]) for side in sides)
    return sides


def join_sides(rows: Sequence[Side]) -> Side:
    """The side that these rows make, one behind the other."""
    starts: list[int] = []
    for row in rows[:-1]:
        starts.append(len(row.ids) + (starts[-1] if starts else 0))
    return Side(
        [token for row in rows for token in row.ids],
        [each for row in rows for each in row.trained],
        [turn for row in rows for turn in row.turns],
        tuple(starts),
    )


def check_dropped(counts: RowCounts, rules: MaskRules) -> None:
    """Raise RowsError where more of the rows that a policy played are too long than is allowed."""
    total = counts.rows + counts.dropped
    if rules.truncation == "error" and counts.dropped > rules.max_dropped * total:
        raise RowsError(
            f"{counts.dropped} of {total} rows have more tokens than max_length "
            f"{rules.max_length} (up to {counts.longest}), more than max_dropped "
            f"{rules.max_dropped:g} allows; raise max_length or max_dropped, or set truncation to "
            "drop (leave such rows out) or right (cut them)"
        )


def _is_played(row: Row) -> bool:
    """Whether a policy played the row, or a side of the pair: nobody chose its length."""
    return row.get("source") == "policy" or ("chosen" in row and "source" not in row)


def _checked(counts: RowCounts, rules: MaskRules) -> RowCounts:
    check_dropped(counts, rules)
    if counts.untrained:
        raise RowsError(
            f"{len(counts.untrained)} rows have no trained token within max_length "
            f"{rules.max_length} (first: {counts.untrained[0]}); raise max_length, or set "
            "truncation to drop to leave them out"
        )
    if counts.rows == 0 and counts.dropped:
        by = "`truncation: drop`" if rules.truncation == "drop" else "`max_dropped`"
        raise NoRowsError(
            f"no rows to train on: {by} left out all {counts.dropped}, which have "
            f"up to {counts.longest} tokens or none that is trained (max_length is "
            f"{rules.max_length}); raise max_length, or look at the data"
        )
    if counts.rows == 0:
        raise NoRowsError("no rows to train on: the data hold none")
    return counts


# SWEET-RL, arXiv 2503.15478, equations 2 and 3: a score is the sum over tokens of weight times
# log-ratio.

Normalisation: TypeAlias = Literal["turn", "trajectory", "none"]


def score_weights(side: Side, normalisation: Normalisation) -> list[float]:
    """One weight for each token, 0 where it is not scored: `turn` gives the sum over turns of the
    mean over a turn's tokens (the paper), `trajectory` the mean over all tokens (the released
    code), `none` the sum. `side.turns` says which turn a token is of; the first token of a row is
    never predicted."""
    scored = [index > 0 and trained for index, trained in enumerate(side.trained)]
    if normalisation == "none":
        return [float(each) for each in scored]
    turns = side.turns if normalisation == "turn" else [0] * len(side.ids)
    sizes = Counter(turn for turn, each in zip(turns, scored, strict=True) if each)
    return [1 / sizes[turn] if each else 0.0 for turn, each in zip(turns, scored, strict=True)]
