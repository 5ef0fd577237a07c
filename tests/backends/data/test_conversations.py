"""Records of three formats become rows; what is no conversation is refused or counted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agentc.kinds.models import RecordReading
from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.data.datasets.conversations import rows_of
from agentc_backends.data.datasets.records import DataRecord, DatasetError, read_records
from agentc_backends.environments.sciworld.tasks import task_named

SHARED = Path(os.environ.get("AGENTC_SHARED", Path(__file__).parents[4] / "shared")) / "data"
GOOD = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}


def rules(layout: Any = "messages", **changes: Any) -> RecordReading:
    values = {"format": layout, "on_malformed": "error", "limit": None, "seed": 0, **changes}
    return RecordReading(**values)


def read(records: list[Any], **changes: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    numbered = (DataRecord(number, number + 1, value) for number, value in enumerate(records))
    rows, counts = rows_of(numbered, "file", rules(**changes))
    return rows, counts.facts(rows)


def roles(row: dict[str, Any]) -> list[str]:
    return [message["role"] for message in row["messages"]]


def test_sharegpt_with_a_system_turn_and_an_unanswered_question() -> None:
    turns = [
        {"from": "system", "value": "Be brief."},
        {"from": "human", "value": "q1"},
        {"from": "gpt", "value": "a1", "loss": False},
        {"from": "human", "value": "q2"},
        {"from": "chatgpt", "value": "a2"},
        {"from": "human", "value": "q3"},
    ]
    (row,), facts = read([{"id": "x", "conversations": turns}], layout="sharegpt")
    assert roles(row) == ["system", "user", "assistant", "user", "assistant"]
    assert row["prompt_length"] == 2
    assert row["messages"][2] == {"role": "assistant", "content": "a1", "loss": False}
    assert "loss" not in row["messages"][4]
    assert facts["unanswered"] == 1
    assert facts["replies"] == 2


def test_alpaca_joins_instruction_and_input() -> None:
    rows, _ = read(
        [
            {"instruction": "Add.", "input": "1 2", "output": "3"},
            {"instruction": "Say hi.", "input": "", "output": "hi"},
        ],
        layout="alpaca",
    )
    assert [row["messages"][0]["content"] for row in rows] == ["Add.\n\n1 2", "Say hi."]


def test_marks_of_fine_tuning_files_and_own_rows_are_kept() -> None:
    replies = [{"role": "assistant", "content": "bad", "weight": 0}]
    record = {
        "task_id": "t1",
        "reward": 1.0,
        "prompt_length": 3,
        "messages": [
            {"role": "user", "content": "instruction"},
            {"role": "assistant", "content": "OK"},
            {"role": "user", "content": "task"},
            *replies,
            {"role": "user", "content": "seen"},
            {"role": "assistant", "content": "good", "loss": True},
        ],
    }
    (row,), _ = read([record])
    assert (row["task_id"], row["reward"], row["prompt_length"]) == ("t1", 1.0, 3)
    assert [m.get("loss") for m in row["messages"]] == [None, None, None, False, None, True]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ([], "is not an object"),
        ({}, "has no list of turns"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "has tool where user has its turn"),
        ({"messages": [{"role": "judge", "content": "x"}]}, "has a turn from 'judge'"),
        (
            {"messages": [GOOD["messages"][0], {"role": "assistant", "content": None}]},
            "has an assistant turn without text",
        ),
        ({"messages": [{"role": "user", "content": None}]}, "has a user turn without text"),
        ({"messages": GOOD["messages"][1:]}, "has assistant where user has its turn"),
        ({"messages": GOOD["messages"][:1]}, "holds no reply"),
        ({"messages": []}, "holds no reply"),
        (
            {"messages": [GOOD["messages"][0], {"role": "assistant", "content": " "}]},
            "has an empty reply",
        ),
    ],
)
def test_what_is_no_conversation(record: Any, reason: str) -> None:
    with pytest.raises(DatasetError, match=reason):
        read([GOOD, record])
    rows, facts = read([GOOD, record, GOOD], on_malformed="drop")
    assert [row["id"] for row in rows] == ["file:0", "file:2"]
    assert sum(facts["malformed"].values()) == 1
    with pytest.raises(DatasetError, match="none of the 1 records"):
        read([record], on_malformed="drop")


def test_a_draw_keeps_the_order_and_the_ids() -> None:
    records: list[Any] = [GOOD] * 50
    rows, facts = read(records, limit=10)
    numbers = [int(row["id"].split(":")[1]) for row in rows]
    assert numbers == sorted(numbers)
    assert len(numbers) == 10 == facts["rows"]
    assert numbers != list(range(10))
    other, _ = read(records, limit=10, seed=1)
    assert [row["id"] for row in other] != [row["id"] for row in rows]


def test_one_list_or_one_object_a_line(tmp_path: Path) -> None:
    lines, whole = tmp_path / "a.jsonl", tmp_path / "a.json"
    lines.write_text("\ufeff" + json.dumps(GOOD) + "\n\n" + json.dumps(GOOD))
    whole.write_text(" \n" + json.dumps([GOOD, GOOD], indent=1))
    assert list(read_records(lines)) == [(0, 1, GOOD), (1, 3, GOOD)]
    assert [(number, value) for number, _, value in read_records(whole)] == [(0, GOOD), (1, GOOD)]
    assert [line for _, line, _ in read_records(whole)] == [3, 15]
    lines.write_text(json.dumps(GOOD) + "\n{broken\n")
    with pytest.raises(DatasetError, match=r"a\.jsonl:2: not JSON"):
        list(read_records(lines))
    lines.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(DatasetError, match="UTF-8"):
        list(read_records(lines))


def digest_of(path: Path) -> str:
    from agentc.runtime.store.digests import content_digest

    found = content_digest(path)
    assert found is not None
    return found


def test_the_job_writes_rows_that_hold_their_contract(tmp_path: Path, run_job: Any) -> None:
    source = tmp_path / "talk.jsonl"
    # A lone surrogate is legal in JSON and cannot be written as UTF-8.
    source.write_text(json.dumps(GOOD) + "\n" + json.dumps(GOOD).replace('"a"', '"a \\ud800"'))
    config = {
        "path": str(source),
        "digest": digest_of(source),
        "format": "messages",
        "on_malformed": "error",
        "limit": None,
        "seed": 0,
    }
    done = run_job("agentc_backends.data.datasets.job_path", config)
    assert done.code == 0, done.output
    assert [row["id"] for row in done.rows("rows.jsonl")] == ["talk:0", "talk:1"]
    check_artifact("SFTDataset", done.data, {}, {}, done.facts)

    changed = run_job(
        "agentc_backends.data.datasets.job_path",
        {**config, "digest": "0" * 64},
        staging=tmp_path / "second",
    )
    assert changed.code == 1
    assert "has changed since the run was planned" in changed.output


@pytest.mark.parametrize("opening", ["", "[\n"])
def test_json_that_is_nested_too_deeply_is_named(tmp_path: Path, opening: str) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_text(opening + json.dumps(GOOD) + (",\n" if opening else "\n") + "[" * 200_000)
    with pytest.raises(DatasetError, match="more deeply than can be read"):
        list(read_records(path))


def published(**fields: Any) -> dict[str, Any]:
    """A record of ETO's authors: instruction, OK, task, then the expert's turns."""
    said = ["Interact with the shop.", "OK", "Instruction: i need a lamp", "Thought: t\nAction: a"]
    return {
        **fields,
        "conversations": [
            {"from": "gpt" if place % 2 else "human", "value": text}
            for place, text in enumerate(said)
        ],
    }


@pytest.mark.parametrize(
    ("record", "ids", "task"),
    [
        ({"id": 4116, "reward": 0.75, "source": "gpt4"}, "eto_webshop", "webshop_4116"),
        ({"id": "0_13"}, "eto_sciworld", "boil:13"),
        ({"id": "7_4"}, "eto_sciworld", "power-component:4"),
        ({"id": "29_479"}, "eto_sciworld", "mendelian-genetics-unknown-plant:479"),
        (
            {
                "id": 0,
                "game_file": "json_2.1.1/train/pick_two_obj_and_place-CD-None-Safe-308/"
                "trial_T20190907_051013_060265",
            },
            "eto_alfworld",
            "pick_two_obj_and_place-CD-None-Safe-308/trial_T20190907_051013_060265",
        ),
    ],
)
def test_published_records_name_tasks_as_environments_do(
    record: dict[str, Any], ids: Any, task: str
) -> None:
    (row,), _ = read(
        [published(**record)], layout="sharegpt", task_ids=ids, reward=1.0, prompt_length=3
    )
    assert (row["task_id"], row["prompt_length"]) == (task, 3)
    assert row["reward"] == record.get("reward", 1.0), "a stated reward counts before the default"


@pytest.mark.parametrize(
    ("record", "changes", "says"),
    [
        ({"id": "boil"}, {"task_ids": "eto_sciworld"}, "no `id` that `task_ids: eto_sciworld`"),
        ({"id": "30_0"}, {"task_ids": "eto_sciworld"}, "no `id` that `task_ids: eto_sciworld`"),
        ({"id": 7}, {"task_ids": "eto_alfworld"}, "no `game_file` that"),
        ({"id": 7}, {"prompt_length": 2}, r"no reply after 2 messages"),
        ({"id": 7}, {"prompt_length": 5}, r"no reply after 5 messages"),
    ],
)
def test_a_record_that_names_no_task_is_refused(
    record: dict[str, Any], changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(DatasetError, match=says):
        read([published(**record)], layout="sharegpt", **changes)


def test_the_released_numbers_of_scienceworld_are_ours() -> None:
    """By the list of the authors' repository, where it is at hand."""
    path = SHARED / "sciworld" / "eto_taskname2id.json"
    if not path.exists():
        pytest.skip("ETO's lists are not here")
    for name, number in json.loads(path.read_text()).items():
        task = task_named(name)
        assert task is not None
        (row,), _ = read([published(id=f"{number}_0")], layout="sharegpt", task_ids="eto_sciworld")
        assert row["task_id"] == f"{task.name}:0"
