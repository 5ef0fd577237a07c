"""Which rows a trainer scores at its end, and what it writes of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.backends.conftest import write_job

from agentc.program.artifact_files import SCORED_FILE
from agentc.program.job import Job
from agentc_backends.data.chat.formats import Message
from agentc_backends.data.chat.rows import Side
from agentc_backends.data.chat.tokens import Encoder
from agentc_backends.data.models.checkpoint import companion_files
from agentc_backends.data.models.scored_rows import (
    EncodedPrompt,
    ScoredRow,
    ScoredRows,
    agreement_of,
    read_scored_rows,
    write_scored_rows,
)
from agentc_backends.trainers.common.program import keep_model
from agentc_backends.trainers.common.scoring import (
    COUNT,
    TOKENS,
    TRAINED,
    ScoringSample,
    sample_of,
    score_rows,
)


class Letters(Encoder):
    """As many tokens as a conversation has letters: one, their number."""

    def __init__(self) -> None:
        pass

    def encode_prompt(self, messages: Sequence[Message]) -> list[int]:
        return [sum(len(each["content"]) for each in messages)]


ENCODER = Letters()


def side(length: int, first: int, token: int = 1) -> Side:
    """A row whose tokens are trained from the place `first` on."""
    return Side([token] * length, [place >= first for place in range(length)])


def test_eight_rows_are_taken_from_all_of_the_data() -> None:
    found = sample_of(ENCODER, [side(6, 3, number) for number in range(80)], []).sides
    assert [row.ids[0] for row in found] == [0, 10, 20, 30, 40, 50, 60, 70]
    assert len(found) == COUNT
    few = tuple(side(6, 3, number) for number in range(3))
    assert sample_of(ENCODER, few, []) == ScoringSample(few, ())
    assert sample_of(ENCODER, [], []) == ScoringSample((), ())


def test_of_a_long_row_a_beginning_is_scored_that_holds_trained_tokens() -> None:
    near, far, trained = side(4000, 100), side(4000, 2000), side(4000, 0)
    lengths = [len(row.ids) for row in sample_of(ENCODER, [near, far, trained], []).sides]
    assert lengths == [TOKENS, 2000 + TRAINED, TOKENS]


def test_what_was_not_trained_has_no_log_prob(tmp_path: Path) -> None:
    prompt = EncodedPrompt([{"role": "user", "content": "craft"}], [1, 2])
    sample = ScoringSample((side(5, 2),), (prompt,))
    scored = score_rows(sample, "float32", lambda row: [-9.0, -0.123456789, math.nan, -2.0])
    assert scored.rows == (ScoredRow([1] * 5, [None, None, -0.12346, None, -2.0]),)
    write_scored_rows(tmp_path, scored)
    assert read_scored_rows(tmp_path) == scored
    assert [path.name for path in tmp_path.iterdir()] == [SCORED_FILE]
    # It says nothing of the model that is trained from this one.
    assert list(companion_files(tmp_path)) == []


def test_prompts_are_those_that_wait_for_a_reply() -> None:
    talk = [
        {"role": "user", "content": "craft", "extra": 1},
        {"role": "assistant", "content": "OK"},
    ]
    found = sample_of(ENCODER, [], [talk[:1], talk, []]).prompts
    assert found == (EncodedPrompt([{"role": "user", "content": "craft"}], [5]),)


def test_a_model_that_is_handed_on_keeps_its_scores(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors", SCORED_FILE):
        (base / name).write_text(name)
    job = Job(write_job(tmp_path / "job", {}, inputs={"model": [base]}))
    keep_model(job, "nothing to train on")
    assert (job.out / SCORED_FILE).read_text() == SCORED_FILE


def test_a_checkpoint_without_rows_has_no_file(tmp_path: Path) -> None:
    write_scored_rows(tmp_path, ScoredRows("float32", ()))
    assert list(tmp_path.iterdir()) == []
    assert read_scored_rows(tmp_path) is None


def test_agreement_is_over_tokens_that_both_scored() -> None:
    rows = [ScoredRow([1, 2, 3], [None, -1.0, -2.0]), ScoredRow([1, 2], [None, -1.0])]
    found = agreement_of(rows, [[None, -1.5, -2.1], [None, -0.9]])
    assert found is not None
    assert (found.rows, found.tokens) == (2, 3)
    assert (found.mean, found.max) == (pytest.approx(0.7 / 3), pytest.approx(0.5))
    assert agreement_of([ScoredRow([1], [None])], [[None]]) is None
