"""Which of several candidates an episode goes on with: the work order's example E2, ties, and what
each of the three models is asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentc_backends.agents.common.critic_scores import CriticNotes, critic_prompts
from agentc_backends.agents.common.episode import Reply, ReplyChoice
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.prompts import Message
from agentc_backends.agents.common.seeds import draw_seed
from agentc_backends.agents.rollout.choice import Chooser, choice_facts
from agentc_backends.clients.errors import (
    BadRequestError,
    ContextOverflowError,
    InfrastructureError,
)

CRITIC = {
    (1, 1, 1): (-1, -2, -0.5),
    (2, 2): (-0.2, -0.2),
    (3,): (-3,),
    (4,) * 4: (-0.7, -0.1, -0.4, -0.8),
}
REFERENCE = {
    (1, 1, 1): (-1.5, -2.5, -0.5),
    (2, 2): (-0.5, -0.25),
    (3,): (-2,),
    (4,) * 4: (-0.9, -0.5, -0.4, -0.6),
}
CANARY = "the city is Quito"
PROMPT: list[Message] = [
    {"role": "user", "content": "Guess."},
    {"role": "assistant", "content": "Is it big?", "raw": "Hm. Is it big?", "cut": True},
    {"role": "user", "content": "Yes."},
]


class Drawing:
    """Replies by seed; keeps what it was asked."""

    def __init__(self, *replies: tuple[int, ...]) -> None:
        self.replies = {draw_seed(7, number): tokens for number, tokens in enumerate(replies)}
        self.asked: list[Sequence[Message]] = []

    async def reply_with_tokens(
        self, messages: Sequence[Message], seed: int, affinity: str
    ) -> Reply:
        self.asked.append(messages)
        tokens = self.replies[seed]
        await asyncio.sleep(0.001 * len(tokens))
        return Reply(f"reply {tokens[0]}", "stop", 10, len(tokens), tokens, (-1.0,) * len(tokens))


class Scoring:
    """Log-probabilities from a table; keeps what it was shown."""

    def __init__(
        self, table: Mapping[tuple[int, ...], Sequence[float]], error: Exception | None = None
    ) -> None:
        self.table = table
        self.error = error
        self.shown: list[Sequence[Message]] = []

    async def tokenize(self, messages: Sequence[Message], *, opened: bool = True) -> list[int]:
        self.shown.append(messages)
        return [0, 0]

    async def score(self, ids: Sequence[int], affinity: str) -> list[float | None]:
        if self.error is not None:
            raise self.error
        return [None, -9.0, *self.table[tuple(ids[2:])]]


def chosen(
    *replies: tuple[int, ...],
    tmp_path: Path,
    normalisation: Any = "turn",
    critic: Scoring | None = None,
    reference: Scoring | None = None,
) -> tuple[Reply, Drawing, Scoring, Scoring]:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    row = {"id": "t", "task_id": "t", "text": CANARY}
    (hidden / "privileged.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    notes = CriticNotes("log_ratio", normalisation, "Know: {privileged}.", "model/0", None)
    drawing, judge = Drawing(*replies), critic or Scoring(CRITIC)
    against = reference or Scoring(REFERENCE)
    chooser = Chooser(
        policy=drawing,
        critic=judge,
        reference=against,
        shown=critic_prompts(notes, [hidden]),
        normalisation=normalisation,
        candidates=len(replies),
    )
    return asyncio.run(chooser.at("t").reply(PROMPT, 7, "t#0")), drawing, judge, against


A, B, C, D = (1, 1, 1), (2, 2), (3,), (4, 4, 4, 4)


def test_the_largest_advantage_is_taken(tmp_path: Path) -> None:
    reply = chosen(B, C, D, A, tmp_path=tmp_path)[0]
    assert reply.text == "reply 1"
    assert reply.choice == ReplyChoice(3, 4, (0.175, -1.0, 0.1, 0.3333), 2 * (4 * 2 + 10))
    assert (reply.prompt_tokens, reply.completion_tokens) == (40, 10), "of all candidates"


def test_sums_choose_otherwise(tmp_path: Path) -> None:
    reply = chosen(D, B, tmp_path=tmp_path, normalisation="none")[0]
    assert reply.choice is not None
    assert (reply.choice.taken, reply.choice.advantages) == (0, (0.4, 0.35))


def test_of_equal_ones_the_first_is_taken_and_alike_ones_are_scored_once(tmp_path: Path) -> None:
    reply, _, judge, _ = chosen(C, A, A, tmp_path=tmp_path)
    assert reply.choice == ReplyChoice(1, 2, (-1.0, 0.3333, 0.3333), 2 * (2 * 2 + 4))
    assert len(judge.shown) == 1


def test_where_all_are_alike_nobody_is_asked(tmp_path: Path) -> None:
    reply, drawing, judge, against = chosen(B, B, B, tmp_path=tmp_path)
    assert reply.choice == ReplyChoice(0, 1, None, 0)
    assert len(drawing.asked) == 3
    assert judge.shown == against.shown == []


def test_one_candidate_is_the_plain_reply() -> None:
    assert draw_seed(1234, 0) == 1234
    assert len({draw_seed(1234, number) for number in range(64)}) == 64


def test_hidden_texts_are_shown_to_the_critic_alone(tmp_path: Path) -> None:
    _, drawing, judge, against = chosen(A, B, tmp_path=tmp_path)
    plain = [{"role": m["role"], "content": m["content"]} for m in PROMPT]
    assert drawing.asked == [plain, plain]
    assert against.shown == [plain]
    assert [CANARY in str(shown) for shown in judge.shown] == [True]


def test_failures_say_whose_they_are(tmp_path: Path) -> None:
    for number, (error, raised) in enumerate(
        [
            (ContextOverflowError("long", status=400), ContextOverflowError),
            (BadRequestError(f"no echo of {CANARY}", status=400), FatalError),
            (InfrastructureError(f"no answer to {CANARY}"), InfrastructureError),
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(raised) as found:
            chosen(A, B, tmp_path=folder, critic=Scoring(CRITIC, error))
        assert CANARY not in str(found.value), "a server may quote what it was asked"
    (tmp_path / "reference").mkdir()
    full = Scoring(REFERENCE, ContextOverflowError("long", status=400))
    with pytest.raises(ContextOverflowError, match="too long for the reference"):
        chosen(A, B, tmp_path=tmp_path / "reference", reference=full)


def test_facts_of_choices() -> None:
    rows: list[dict[str, Any]] = [
        {"tokens": {"scored": 5}, "choices": [{"taken": 1, "distinct": 2}]},
        {"tokens": {"scored": 0}, "choices": [{"taken": 0, "distinct": 1}]},
        {"tokens": {}},
    ]
    assert choice_facts(rows, 4) == {"drawn": 8, "alike": 1, "moved": 1, "scored_tokens": 5}
