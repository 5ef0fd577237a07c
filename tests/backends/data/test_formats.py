"""Published formats become rows or pairs, and no field of a record is lost in silence."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentc.kinds.models import RecordReading
from agentc.runtime.contracts.artifacts import check_artifact
from agentc.runtime.store.digests import content_digest
from agentc_backends.data.datasets.conversations import rows_of
from agentc_backends.data.datasets.records import BOOKKEEPING, DataRecord, DatasetError

COUNT = {"name": "count", "parameters": {"type": "object", "properties": {}}}
CALL = '<tool_call>\n{"name": "count", "arguments": {"what": "doors"}}\n</tool_call>'
ASK = {"role": "user", "content": "How many doors?"}
SAY = {"role": "assistant", "content": "Three."}


def read(record: dict[str, Any], layout: Any = "messages", **changes: Any) -> tuple[Any, Any]:
    """The row of one record, with the facts of the reading."""
    values = {"on_malformed": "error", "limit": None, "seed": 0, "format": layout, **changes}
    rows, counts = rows_of([DataRecord(0, 1, record)], "file.jsonl", RecordReading(**values))
    return rows[0], counts.facts(rows)


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [f"{message['role'][0]}: {message['content']}" for message in messages]


# Fields that change what is trained (each was dropped without a word).


@pytest.mark.parametrize(
    ("layout", "record", "expected"),
    [
        (
            "alpaca",
            {
                "system": "Speak like a pirate.",
                "history": [["Who are you?", "A pirate."]],
                "instruction": "What is here?",
                "output": "A door, matey.",
            },
            [
                "s: Speak like a pirate.",
                "u: Who are you?",
                "a: A pirate.",
                "u: What is here?",
                "a: A door, matey.",
            ],
        ),
        (
            "sharegpt",
            {
                "system": "Speak like a pirate.",
                "tools": "[]",
                "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}],
            },
            ["s: Speak like a pirate.", "u: q", "a: a"],
        ),
        (
            "messages",
            {"messages": [ASK, {"role": "assistant", "content": [{"type": "text", "text": "3."}]}]},
            ["u: How many doors?", "a: 3."],
        ),
        ("prompt_completion", {"prompt": "hi", "completion": "there"}, ["u: hi", "a: there"]),
        ("prompt_completion", {"prompt": [ASK], "completion": [SAY]}, texts([ASK, SAY])),
        (
            "prompt_completion",
            {"system": "s", "query": "hi", "response": "there"},
            ["s: s", "u: hi", "a: there"],
        ),
    ],
)
def test_what_a_record_says_is_in_the_row(
    layout: str, record: dict[str, Any], expected: list[str]
) -> None:
    row, _ = read(record, layout)
    assert texts(row["messages"]) == expected


def test_functions_calls_and_results_of_openai_are_rows_of_tools() -> None:
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "count", "arguments": '{"what": "doors"}'},
    }
    turns = [
        ASK,
        {"role": "assistant", "content": "Let me look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "3"},
        SAY,
    ]
    row, facts = read({"tools": [{"type": "function", "function": COUNT}], "messages": turns})
    assert row["messages"][0] == {
        "role": "system",
        "content": "",
        "tools": [{"type": "function", "function": COUNT}],
    }
    expected = [texts([ASK])[0], f"a: Let me look.\n{CALL}", "t: 3", "a: Three."]
    assert texts(row["messages"][1:]) == expected
    assert row["prompt_length"] == 2
    assert facts["unused_fields"]["messages.tool_call_id"] == 1

    # Without declared functions, and without a text beside the call.
    row, _ = read({"messages": [ASK, {**turns[1], "content": None}, *turns[2:]]})
    assert texts(row["messages"]) == [texts([ASK])[0], f"a: {CALL}", "t: 3", "a: Three."]


def test_calls_of_llama_factory_are_rows_of_tools() -> None:
    record = {
        "conversations": [
            {"from": "human", "value": "How many doors?"},
            {"from": "function_call", "value": '{"name": "count", "arguments": {"what": "doors"}}'},
            {"from": "observation", "value": "3"},
            {"from": "gpt", "value": "Three."},
        ],
        "tools": json.dumps([COUNT]),
    }
    row, _ = read(record, "sharegpt")
    assert row["messages"][0]["tools"] == [{"type": "function", "function": COUNT}]
    expected = ["u: How many doors?", f"a: {CALL}", "t: 3", "a: Three."]
    assert texts(row["messages"][1:]) == expected


def test_results_of_several_calls_are_one_message_in_the_order_of_the_calls() -> None:
    calls = [{"id": n, "function": {"name": "count", "arguments": {}}} for n in ("a", "b")]
    answers = [{"role": "tool", "tool_call_id": n, "content": f"of {n}"} for n in ("a", "b")]
    turns = [ASK, {"role": "assistant", "tool_calls": calls}, *answers, SAY]
    row, _ = read({"messages": turns})
    expected = "t: of a\n</tool_response>\n<tool_response>\nof b"
    assert texts(row["messages"])[2] == expected
    # Hermes' own data have the tags already.
    tagged = "<tool_response>\nof a\n</tool_response>\n<tool_response>\nof b\n</tool_response>"
    row, _ = read({"messages": [*turns[:2], {"role": "tool", "content": tagged}, SAY]})
    assert texts(row["messages"])[2] == expected
    with pytest.raises(DatasetError, match="in another order than their calls"):
        read({"messages": [*turns[:2], answers[1], answers[0], SAY]})


def test_reasoning_is_trained_where_that_is_asked_for() -> None:
    record = {"messages": [ASK, {**SAY, "reasoning_content": "One, two, three."}]}
    with pytest.raises(DatasetError, match=r"messages\.reasoning_content.*`reasoning: think`"):
        read(record)
    row, _ = read(record, reasoning="think")
    assert row["messages"][1] == {**SAY, "raw": "<think>\nOne, two, three.\n</think>\n\nThree."}


@pytest.mark.parametrize(
    ("mark", "loss"),
    [
        ({"weight": 0}, False),
        ({"weight": 1}, True),
        ({"loss": False}, False),
        ({"loss": None}, None),
        ({"train": False}, False),
        ({"training": True}, True),
        ({"loss_weight": 0.0}, False),
    ],
)
def test_marks_of_other_trainers_are_the_rows_own(mark: dict[str, Any], loss: bool | None) -> None:
    row, _ = read({"messages": [ASK, {**SAY, **mark}]})
    assert row["messages"][1].get("loss") == loss


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"messages": [ASK, SAY], "label": False}, r"`label` \(marks good and bad replies \(KTO\)"),
        ({"messages": [ASK, SAY], "images": ["door.png"]}, r"`images` \(belongs to multimodal"),
        ({"messages": [ASK, SAY], "loss_weight": 0}, "`loss_weight`"),
        ({"messages": [ASK, SAY], "chosen": SAY}, "set `format: preference`"),
        ({"messages": [{**ASK, "name": "Bo"}, SAY]}, r"`messages\.name`"),
        ({"messages": [{**ASK, "weight": True}, SAY]}, "marks a user turn as trained"),
        ({"messages": [ASK, {**SAY, "weight": 0.5}]}, "only 0, 1, true, false"),
        ({"messages": [ASK, {**SAY, "weight": 0, "train": True}]}, "contradict each other"),
        ({"messages": [ASK, {**SAY, "function_call": {"name": "f"}, "refusal": "no"}]}, "refusal"),
        ({"messages": [ASK, {**SAY, "tool_calls": [{"function": {}}]}]}, "is no function's name"),
        ({"messages": [ASK, SAY], "tools": "count"}, "`tools` that is no list of functions"),
        ({"messages": [ASK, SAY], "reward": "high"}, "`reward` that is no number"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}, SAY]},
            "a part of type 'image_url'",
        ),
        ({"prompt": "hi", "completion": "there"}, "set `format: prompt_completion`"),
        ({"prompt": "q", "chosen": "a", "rejected": "b"}, "set `format: preference`"),
        ({"instruction": "q", "output": "a"}, "set `format: alpaca`"),
        ({"conversations": []}, "set `format: sharegpt`"),
    ],
)
def test_what_would_be_lost_is_an_error_that_dropping_does_not_hide(
    record: dict[str, Any], says: str
) -> None:
    for on_malformed in ("error", "drop"):
        with pytest.raises(DatasetError, match=says) as raised:
            read(record, on_malformed=on_malformed)
        assert str(raised.value).startswith("file.jsonl:1: record 0 ")
        assert "on_malformed" not in str(raised.value)


def test_a_file_of_no_format_names_its_fields_and_the_formats() -> None:
    with pytest.raises(DatasetError) as raised:
        read({"body": "x", "title": "y"})
    said = str(raised.value)
    assert "its fields are `body`, `title`" in said
    assert "`prompt_completion` has `prompt` and `completion`" in said
    assert "on_malformed" not in said
    with pytest.raises(DatasetError, match=r"none of the 1 records.*its fields are `body`"):
        read({"body": "x"}, on_malformed="drop")


def test_dropping_and_ignoring_are_told() -> None:
    values = {"format": "messages", "on_malformed": "drop", "limit": None, "seed": 0}
    rules = RecordReading(ignore_fields=("label", "lable"), **values)
    marked = {"messages": [ASK, {**SAY, "weight": 0}, ASK, SAY], "label": True}
    records = [DataRecord(0, 1, marked), DataRecord(1, 2, {"messages": [ASK]})]
    rows, counts = rows_of(records, "file.jsonl", rules)
    assert counts.facts(rows)["ignored_fields"] == {"label": 1}
    assert counts.warnings() == [
        "1 of 2 records were dropped: holds no reply (1)",
        "`ignore_fields` names what no record has: lable",
        "1 replies are marked as not trained; only a training with `loss_on: marked` leaves them "
        "out",
    ]


# Preferences.

PAIR = ("u: Open the door.", "a: open", "a: wait")
_TALK = [{"role": "user", "content": "Open the door."}]


def _turn(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


@pytest.mark.parametrize(
    "record",
    [
        {"prompt": "Open the door.", "chosen": "open", "rejected": "wait"},
        {"prompt": _TALK, "chosen": [_turn("open")], "rejected": [_turn("wait")]},
        {"chosen": [*_TALK, _turn("open")], "rejected": [*_TALK, _turn("wait")]},
        {
            "prompt": "Open the door.",
            "chosen": [*_TALK, _turn("open")],
            "rejected": [*_TALK, _turn("wait")],
            "score_chosen": 8.0,
            "score_rejected": 2.5,
        },
        {
            "conversations": [{"from": "human", "value": "Open the door."}],
            "chosen": {"from": "gpt", "value": "open"},
            "rejected": {"from": "gpt", "value": "wait"},
        },
        {"instruction": "Open the door.", "input": "", "chosen": "open", "rejected": "wait"},
        {"question": "Open the door.", "chosen": "open", "rejected": "wait"},
        {"messages": [*_TALK, _turn("open")], "rejected_response": "wait"},
        {"messages": [*_TALK, _turn("open")], "rejected_messages": [*_TALK, _turn("wait")]},
        {
            "chosen": "\n\nHuman: Open the door.\n\nAssistant: open",
            "rejected": "\n\nHuman: Open the door.\n\nAssistant: wait",
        },
    ],
)
def test_published_preferences_are_pairs(record: dict[str, Any]) -> None:
    row, _ = read(record, "preference")
    assert texts([*row["prompt"], *row["chosen"], *row["rejected"]]) == [*PAIR]
    rewards = record.get("score_chosen", 1.0), record.get("score_rejected", 0.0)
    assert (row["chosen_reward"], row["rejected_reward"]) == rewards


def test_an_earlier_reply_stays_in_the_prompt_of_a_pair() -> None:
    """Such a record was an SFT row with the prompt's own reply as its answer."""
    turns = [
        {"from": "human", "value": "Hello."},
        {"from": "gpt", "value": "What is to be done?"},
        {"from": "human", "value": "Open the door."},
    ]
    sides = {"chosen": {"from": "gpt", "value": "open"}, "rejected": "wait"}
    row, _ = read({"system": "Act.", "conversations": turns, **sides}, "preference")
    assert texts(row["prompt"]) == [
        "s: Act.",
        "u: Hello.",
        "a: What is to be done?",
        "u: Open the door.",
    ]


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"prompt": "q", "chosen": "a", "rejected": "a"}, "the same text on both sides"),
        ({"chosen": "The sky", "rejected": "The sea"}, "has no prompt"),
        ({"prompt": "q", "chosen": "a"}, "no `rejected` one"),
        ({"prompt": "q", "rejected": "a"}, "no `chosen` one"),
        ({"prompt": "q", "chosen": " ", "rejected": "a"}, "has an empty reply"),
        ({"prompt": [*_TALK, SAY], "chosen": "a", "rejected": "b"}, "where user has its turn"),
        (
            {"prompt": "q", "chosen": "a", "rejected": "b", "score_chosen": 1, "score_rejected": 1},
            "no higher score",
        ),
        (
            {"prompt": "other", "chosen": [*_TALK, SAY], "rejected": [*_TALK, _turn("b")]},
            "`prompt` that is not what both sides begin with",
        ),
        (
            {"chosen": [*_TALK, SAY], "rejected": [*_TALK, SAY, *_TALK, SAY]},
            "differ before the first reply|does not end with a reply",
        ),
        ({"prompt": "q", "chosen": [{**SAY, "loss": False}], "rejected": "b"}, "as not trained"),
        ({"prompt": "q", "chosen": "a", "rejected": "b", "reward": 1.0}, "does not read: `reward`"),
    ],
)
def test_what_is_no_pair(record: dict[str, Any], says: str) -> None:
    with pytest.raises(DatasetError, match=says):
        read(record, "preference")


# Every field of every format: removing it changes the rows, or it is reported.

_CALLED = {
    "role": "assistant",
    "content": "Let me look.",
    "tool_calls": [
        {
            "id": "1",
            "type": "function",
            "index": 0,
            "function": {"name": "count", "arguments": '{"what": "doors"}'},
        }
    ],
}
_MARKED = {**SAY, "weight": 0, "reasoning_content": "One, two.", "cut": True}
_OPENAI = [
    {"role": "system", "content": "Act."},
    {**ASK, "weight": 0},
    _CALLED,
    {"role": "tool", "tool_call_id": "1", "name": "count", "content": "3"},
    _MARKED,
]
_SHAREGPT = [
    {"from": "human", "value": "q", "loss": None},
    {"from": "gpt", "value": "a", "loss": False},
    {"from": "human", "value": "q2"},
    {"from": "function_call", "value": '{"name": "count", "arguments": {"what": "doors"}}'},
    {"from": "observation", "value": "3"},
    {"from": "gpt", "value": "b", "train": True},
]
_COMMON = {"id": "7", "source": "hub", "split": "train", "task_id": "t"}
_SCORED = {"chosen_reward": 3.0, "rejected_reward": 2.0}
_OWN = {"reward": 0.5, "prompt_length": 4, "memory": "last", "forgotten": 1}
KNOWN: dict[str, tuple[str, dict[str, Any]]] = {
    "openai": ("messages", {"messages": _OPENAI, "tools": [COUNT], **_COMMON}),
    "openai_legacy": (
        "messages",
        {
            "messages": [ASK, {**SAY, "function_call": {"name": "f", "arguments": '{"a": 1}'}}],
            "functions": [COUNT],
        },
    ),
    "own": ("messages", {"messages": [ASK, SAY, ASK, {**SAY, "raw": "So: Three."}]}),
    "own_rows": ("messages", {"messages": [ASK, SAY, ASK, SAY], **_OWN, "prompt_length": 3}),
    "sharegpt": (
        "sharegpt",
        {"conversations": _SHAREGPT, "system": "Act.", "tools": json.dumps([COUNT]), **_COMMON},
    ),
    "alpaca": (
        "alpaca",
        {
            "system": "Act.",
            "history": [["q", "a"]],
            "instruction": "Add.",
            "input": "1 2",
            "output": "3",
            "tools": [COUNT],
            "reward": 1.0,
        },
    ),
    "trl": (
        "prompt_completion",
        {"prompt": [ASK], "completion": [_MARKED], "tools": [COUNT], **_COMMON},
    ),
    "swift": (
        "prompt_completion",
        {"system": "s", "history": [["q", "a"]], "query": "q2", "response": "b"},
    ),
    "trl_pairs": (
        "preference",
        {"prompt": [ASK], "chosen": [SAY], "rejected": [_turn("Two.")], **_SCORED, **_COMMON},
    ),
    "trl_implicit": ("preference", {"chosen": [ASK, SAY], "rejected": [ASK, _turn("Two.")]}),
    "ultrafeedback": (
        "preference",
        {
            "prompt": "How many doors?",
            "prompt_id": "x",
            "chosen": [ASK, SAY],
            "rejected": [ASK, _turn("Two.")],
            "score_chosen": 8.0,
            "score_rejected": 2.5,
        },
    ),
    "llama_factory_pairs": (
        "preference",
        {
            "system": "Act.",
            "tools": json.dumps([COUNT]),
            "conversations": _SHAREGPT[:1],
            "chosen": {"from": "gpt", "value": "a"},
            "rejected": {"from": "gpt", "value": "b"},
        },
    ),
    "alpaca_pairs": (
        "preference",
        {
            "history": [["q", "a"]],
            "instruction": "Add.",
            "input": "1 2",
            "chosen": "3",
            "rejected": "4",
        },
    ),
    "swift_pairs": ("preference", {"messages": [ASK, SAY], "rejected_response": "Two."}),
}


def places(value: Any, path: str = "") -> Iterator[tuple[str, Any, str]]:
    """Every field of a record and of the objects in it: its path, and the object that has it.
    What a function's own signature says is one field."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield f"{path}{name}", value, name
            if name not in ("tools", "functions"):
                yield from places(each, f"{path}{name}.")
    elif isinstance(value, list):
        for each in value:
            yield from places(each, path)


def outcome(record: dict[str, Any], layout: str, **changes: Any) -> tuple[str, dict[str, Any]]:
    """The row of a record or the error as a text, and the counts of fields."""
    try:
        row, facts = read(record, layout, reasoning="think", **changes)
    except DatasetError as error:
        return str(error), {}
    return json.dumps(row, sort_keys=True), {**facts["unused_fields"], **facts["ignored_fields"]}


@pytest.mark.parametrize("name", KNOWN)
def test_every_field_is_used_or_reported(name: str) -> None:
    layout, record = KNOWN[name]
    whole, reported = outcome(record, layout)
    assert whole.startswith("{"), whole
    for number, (path, _, _) in enumerate(list(places(record))):
        shorter = json.loads(json.dumps(record))
        _, holder, field = list(places(shorter))[number]
        if holder[field] is None:
            continue
        del holder[field]
        assert outcome(shorter, layout)[0] != whole or path in reported, path


@pytest.mark.parametrize("name", KNOWN)
def test_an_unknown_field_is_named_and_can_be_ignored(name: str) -> None:
    layout, record = KNOWN[name]
    chance = random.Random(name)
    whole, reported = outcome(record, layout)
    names = [
        *("label", "kto_tag", "images", "videos", "margin", "text", "chat_template_kwargs"),
        *("train_detail", "refusal", "loss_scale", "segments", "ability", "extra_info"),
        *("".join(chance.choices("abcdefgh_", k=9)) + "x" for _ in range(5)),
    ]
    holders = {path.rpartition(".")[0]: holder for path, holder, _ in places(record)}
    for above in holders:
        for name in names:
            longer = json.loads(json.dumps(record))
            holder = {p.rpartition(".")[0]: h for p, h, _ in places(longer)}[above]
            holder[name] = chance.choice([False, 0, "x", [1], {"a": 1}])
            path = f"{above}.{name}" if above else name
            assert f"`{path}`" in outcome(longer, layout)[0], path
            ignored = outcome(longer, layout, ignore_fields=(path,))
            assert ignored == (whole, {**reported, path: 1})
            # An export of a table has the columns of other rows as nulls.
            holder[name] = chance.choice([None, "", [], {}])
            assert outcome(longer, layout) == (whole, reported)


def test_bookkeeping_is_counted() -> None:
    row, facts = read({"messages": [ASK, SAY], **dict.fromkeys(sorted(BOOKKEEPING), "x")})
    assert facts["unused_fields"] == dict.fromkeys(sorted(BOOKKEEPING), 1)
    assert row["source"] == "dataset"


@pytest.mark.parametrize("name", KNOWN)
def test_the_job_writes_what_holds_its_contract(name: str, tmp_path: Path, run_job: Any) -> None:
    layout, record = KNOWN[name]
    source = tmp_path / "talk.jsonl"
    source.write_text(json.dumps(record))
    config = {
        "path": str(source),
        "digest": content_digest(source),
        "format": layout,
        "on_malformed": "error",
        "limit": None,
        "seed": 0,
        "reasoning": "think",
    }
    done = run_job("agentc_backends.data.datasets.job_path", config)
    assert done.code == 0, done.output
    product = "PreferencePairs" if layout == "preference" else "SFTDataset"
    check_artifact(product, done.data, {}, {}, done.facts)


@pytest.mark.parametrize("name", KNOWN)
def test_values_of_other_types_end_in_an_error_for_people(name: str) -> None:
    layout, record = KNOWN[name]
    chance = random.Random(name)
    odd = (None, True, 0, 1.5, "", "x", "[]", '{"a": 1}', [], [1], ["x"], [[]], {}, {"a": 1}, [{}])
    for number in range(len(list(places(record)))):
        for value in odd:
            changed = json.loads(json.dumps(record))
            _, holder, field = list(places(changed))[number]
            holder[field] = value
            for each in (layout, chance.choice(["messages", "sharegpt", "alpaca", "preference"])):
                outcome(changed, each)  # any other exception than DatasetError fails the test
