"""Rows of data sets: masks by rule, truncation, and what is counted or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from tests.torch.trl.jobs import make_job

from agentc.program.job import Job
from agentc_backends.data.chat.formats import RowsError, format_named
from agentc_backends.data.chat.rows import (
    IGNORED,
    MaskRules,
    encode_pairs,
    encode_rows,
    warn_of_forgotten,
)
from agentc_backends.data.chat.tokens import Encoder
from agentc_backends.data.models.vocabulary import (
    corpus_messages,
    corpus_texts,
    train_tokenizer,
)

PROMPT = [
    {"role": "user", "content": "Say OK."},
    {"role": "assistant", "content": "OK"},
    {"role": "user", "content": "Goal: craft a stick."},
]
GOOD = [
    {"role": "assistant", "content": "Action: get 1 plank"},
    {"role": "user", "content": "Got 1 plank"},
    {"role": "assistant", "content": "Action: craft 4 stick"},
]
BAD = [{"role": "assistant", "content": "Action: jump"}]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    chat = format_named("chatml")
    return Encoder(train_tokenizer(chat, corpus_texts(chat, [PROMPT + GOOD]), 400, 512), "chatml")


def row(name: str, messages: list[dict[str, str]]) -> dict[str, Any]:
    return {"id": name, "messages": messages, "prompt_length": 3}


def pair(name: str) -> dict[str, Any]:
    return {"id": name, "prompt": PROMPT, "chosen": GOOD, "rejected": BAD}


def rules(loss_on: str, max_length: int = 512, truncation: str = "error") -> MaskRules:
    return MaskRules(loss_on=loss_on, max_length=max_length, truncation=truncation)


def trained_text(encoder: Encoder, labels: list[int]) -> str:
    return str(encoder.tokenizer.decode([i for i in labels if i != IGNORED]))


@pytest.mark.parametrize(
    ("loss_on", "expected"),
    [
        (
            "all_replies",
            "OK<|im_end|>Action: get 1 plank<|im_end|>Action: craft 4 stick<|im_end|>",
        ),
        ("after_prompt", "Action: get 1 plank<|im_end|>Action: craft 4 stick<|im_end|>"),
    ],
)
def test_loss_on(encoder: Encoder, loss_on: str, expected: str) -> None:
    (side,), counts = encode_rows(encoder, [row("a", PROMPT + GOOD)], rules(loss_on))
    assert trained_text(encoder, side.labels()) == expected
    assert counts.trained_tokens == sum(label != IGNORED for label in side.labels())
    assert (counts.rows, counts.truncated, counts.dropped) == (1, 0, 0)


def test_replies_that_are_marked_as_wrong_are_not_trained(encoder: Encoder) -> None:
    wrong: dict[str, Any] = {"role": "assistant", "content": "Action: jump", "loss": False}
    messages = [*PROMPT, wrong, {"role": "user", "content": "You cannot."}, *GOOD]
    (side,), _ = encode_rows(encoder, [row("a", messages)], rules("marked"))
    expected = "Action: get 1 plank<|im_end|>Action: craft 4 stick<|im_end|>"
    assert trained_text(encoder, side.labels()) == expected


@pytest.mark.parametrize(
    ("loss_on", "expected"),
    [
        ("assistant", "Action: get 1 plank<|im_end|>Action: craft 4 stick<|im_end|>"),
        (
            "completion",
            "Action: get 1 plank<|im_end|>\n<|im_start|>user\nGot 1 plank<|im_end|>\n"
            "<|im_start|>assistant\nAction: craft 4 stick<|im_end|>\n",
        ),
    ],
)
def test_score_on(encoder: Encoder, loss_on: str, expected: str) -> None:
    ((chosen, rejected),), _ = encode_pairs(encoder, [pair("a")], rules(loss_on))
    assert trained_text(encoder, chosen.labels()) == expected
    closing = "\n" if loss_on == "completion" else ""
    assert trained_text(encoder, rejected.labels()) == "Action: jump<|im_end|>" + closing


THOUGHTFUL = [
    {**GOOD[0], "raw": f"Planks first. OUTPUT: {GOOD[0]['content']}"},
    GOOD[1],
    {**GOOD[2], "raw": f"Then sticks. OUTPUT: {GOOD[2]['content']}"},
]


def test_a_reply_is_trained_as_generated_behind_what_was_seen(encoder: Encoder) -> None:
    """A row for each trained turn, in which the turns before are what the policy saw of them."""
    sides, counts = encode_rows(encoder, [row("a", PROMPT + THOUGHTFUL)], rules("after_prompt"))
    expected = [
        (PROMPT, "Planks first. OUTPUT: Action: get 1 plank<|im_end|>"),
        (PROMPT + GOOD[:2], "Then sticks. OUTPUT: Action: craft 4 stick<|im_end|>"),
    ]
    for side, (before, text) in zip(sides, expected, strict=True):
        assert trained_text(encoder, side.labels()) == text
        shown = encoder.encode_prompt(before)
        assert side.ids[: len(shown)] == shown
        assert not any(side.trained[: len(shown)])
    assert (counts.rows, counts.parted) == (2, 1)
    assert counts.trained_tokens == sum(sum(side.trained) for side in sides)


def test_a_row_is_cut_where_a_trained_reply_has_more_to_it(encoder: Encoder) -> None:
    """Also at replies that were seen whole, and not where the others are not trained."""
    mixed = [*PROMPT, GOOD[0], GOOD[1], THOUGHTFUL[2]]
    sides, counts = encode_rows(encoder, [row("a", mixed)], rules("all_replies"))
    assert [trained_text(encoder, side.labels()) for side in sides] == [
        "OK<|im_end|>",
        "Action: get 1 plank<|im_end|>",
        "Then sticks. OUTPUT: Action: craft 4 stick<|im_end|>",
    ]
    given: list[dict[str, Any]] = [*PROMPT, {**THOUGHTFUL[0], "loss": False}, *GOOD[1:]]
    (one,), counts = encode_rows(encoder, [row("a", given)], rules("marked"))
    (other,), _ = encode_rows(encoder, [row("a", PROMPT + GOOD)], rules("after_prompt"))
    assert one.ids == other.ids
    assert trained_text(encoder, one.labels()) == "Action: craft 4 stick<|im_end|>"
    assert counts.parted == 0


def test_the_last_reply_of_a_side_is_whole_and_those_before_as_seen(encoder: Encoder) -> None:
    """As the released code of SWEET-RL pairs trajectories; a pair of single turns is exact."""
    long = {**pair("a"), "chosen": THOUGHTFUL}
    ((chosen, _),), counts = encode_pairs(encoder, [long], rules("assistant"))
    assert trained_text(encoder, chosen.labels()) == (
        "Action: get 1 plank<|im_end|>Then sticks. OUTPUT: Action: craft 4 stick<|im_end|>"
    )
    assert counts.parted == 1
    single = {**pair("b"), "prompt": PROMPT + THOUGHTFUL[:2], "chosen": [THOUGHTFUL[2]]}
    ((chosen, rejected),), counts = encode_pairs(encoder, [single], rules("assistant"))
    assert trained_text(encoder, chosen.labels()) == (
        "Then sticks. OUTPUT: Action: craft 4 stick<|im_end|>"
    )
    shown = encoder.encode_prompt(PROMPT + GOOD[:2])
    assert chosen.ids[: len(shown)] == rejected.ids[: len(shown)] == shown
    assert counts.parted == 0


def test_a_vocabulary_is_of_whole_replies(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(row("a", PROMPT + THOUGHTFUL)) + "\n")
    chat = format_named("chatml")
    texts = corpus_texts(chat, corpus_messages([tmp_path]))
    assert sum("OUTPUT:" in text for text in texts) == 2


def test_m8_truncation_keeps_the_labels_of_kept_tokens(encoder: Encoder) -> None:
    rows = [row("a", PROMPT + GOOD)]
    (whole,), _ = encode_rows(encoder, rows, rules("all_replies"))
    for limit in range(20, len(whole.ids)):
        (cut,), counts = encode_rows(encoder, rows, rules("all_replies", limit, "right"))
        assert cut.ids == whole.ids[:limit]
        assert cut.labels() == whole.labels()[:limit]
        assert counts.truncated == 1


def test_m8_the_sides_of_a_pair_are_cut_independently(encoder: Encoder) -> None:
    ((chosen, rejected),), _ = encode_pairs(encoder, [pair("a")], rules("assistant"))
    limit = len(rejected.ids) + 2
    assert limit < len(chosen.ids)
    ((cut, kept),), counts = encode_pairs(encoder, [pair("a")], rules("assistant", limit, "right"))
    assert kept == rejected
    assert cut.ids == chosen.ids[:limit]
    assert counts.truncated == 1


def test_too_long_rows_are_refused_by_default(encoder: Encoder) -> None:
    with pytest.raises(RowsError, match=r"row a has \d+ tokens, more than max_length 16"):
        encode_rows(encoder, [row("a", PROMPT + GOOD)], rules("all_replies", 16))


def test_too_long_rows_can_be_left_out(encoder: Encoder) -> None:
    rows = [row("long", PROMPT + GOOD), row("short", PROMPT + BAD)]
    (short,), _ = encode_rows(encoder, rows[1:], rules("all_replies"))
    limit = len(short.ids)
    sides, counts = encode_rows(encoder, rows, rules("all_replies", limit, "drop"))
    assert sides == [short]
    assert (counts.rows, counts.dropped, counts.truncated) == (1, 1, 0)


def test_rows_without_a_trained_token_are_refused_unless_left_out(encoder: Encoder) -> None:
    rows = [row("none", PROMPT), row("some", PROMPT + BAD)]
    with pytest.raises(RowsError, match=r"1 rows have no trained token .*\(first: none\)"):
        encode_rows(encoder, rows, rules("after_prompt"))
    sides, counts = encode_rows(encoder, rows, rules("after_prompt", truncation="drop"))
    assert len(sides) == 1
    assert counts.dropped == 1


def test_nothing_to_train_on_is_refused(encoder: Encoder) -> None:
    with pytest.raises(RowsError, match="no rows to train on"):
        encode_rows(encoder, [], rules("all_replies"))


def test_rows_whose_policy_did_not_see_all_turns_are_counted_and_told(
    encoder: Encoder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = Job(make_job(tmp_path, "sft", {}, {}))
    long = row("c", PROMPT + GOOD * 30) | {"forgotten": 9}
    given = [row("a", PROMPT + GOOD), row("b", PROMPT + GOOD) | {"forgotten": 1}, long]
    length = len(encoder.encode(PROMPT + GOOD).ids)
    _, counts = encode_rows(encoder, given, rules("after_prompt", length, "drop"))
    assert (counts.rows, counts.dropped, counts.forgotten) == (2, 1, 1)
    warn_of_forgotten(job, counts)
    assert "in 1 of 2 rows the policy no longer saw all turns" in capsys.readouterr().err
    (kept,) = json.loads((tmp_path / "facts.json").read_text("utf-8"))["warnings"]
    assert kept.startswith("in 1 of 2 rows")
    _, counts = encode_rows(encoder, given[:1], rules("after_prompt"))
    warn_of_forgotten(job, counts)
    assert capsys.readouterr().err == ""


def test_replies_stand_behind_the_last_observation_where_it_was_all_that_was_shown(
    encoder: Encoder,
) -> None:
    talk = [
        ("user", "rules"), ("assistant", "OK"), ("user", "hall"), ("assistant", "right"),
        ("user", "kitchen"), ("assistant", "left"),
    ]  # fmt: skip
    messages = [{"role": role, "content": content} for role, content in talk]
    shown = {**row("a", messages), "prompt_length": 3, "memory": "last"}
    sides, counts = encode_rows(encoder, [shown], rules("after_prompt"))
    alone = [encoder.encode([*messages[:2], *messages[place : place + 2]]).ids for place in (2, 4)]
    assert [side.ids for side in sides] == alone
    assert ["right" in trained_text(encoder, side.labels()) for side in sides] == [True, False]
    assert counts.parted == 1
    sides, _ = encode_rows(encoder, [shown], rules("all_replies"))
    assert ["OK" in trained_text(encoder, side.labels()) for side in sides] == [True, False]
