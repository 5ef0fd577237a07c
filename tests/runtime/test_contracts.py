"""Post-conditions: each fault is found, named by row and field, and healthy artifacts pass.

Checkpoints: `test_checkpoint_contract.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.contract_cases import changed, check, write_rows

RANGE = {"reward_range": [0.0, 1.0]}


def say(role: str, content: str = "x") -> dict[str, str]:
    return {"role": role, "content": content}


EPISODE: dict[str, Any] = {
    "id": "a#0",
    "task_id": "a",
    "attempt": 0,
    "seed": 1,
    "prompt_seed": 0,
    "split": "train",
    "messages": [say("system"), say("user"), say("assistant"), say("user"), say("assistant")],
    "prompt_length": 2,
    "reward": 0.5,
    "success": False,
    "end": "failure",
    "error": None,
    "turns": 2,
    "invalid": 0,
    "rewards": [0.0, 0.5],
    "tokens": {"prompt": 1, "completion": 1},
    "source": "policy",
}
PAIR: dict[str, Any] = {
    "id": "p",
    "task_id": "a",
    "prompt": [say("user")],
    "chosen": [say("assistant", "good"), say("user"), say("assistant")],
    "rejected": [say("assistant", "bad")],
    "chosen_reward": 1.0,
    "rejected_reward": 0.0,
    "outcome": "win",
    "chosen_id": "e#0",
    "rejected_id": "r#0",
}
INTERVAL = {"mean": 0.5, "low": 0.4, "high": 0.6, "confidence": 0.95, "method": "bootstrap"}
METRICS: dict[str, Any] = {
    "name": "sft",
    "n": 2,
    "n_error": 0,
    "reward": INTERVAL,
    "success": INTERVAL,
    "turns": {"mean": 3.0},
    "invalid_share": 0.0,
    "ends": {"success": 1, "failure": 1},
    "tasks": {"a": {"reward": 0.5, "success": 0.5, "attempts": 2}},
    "split": "test",
    "environment": "textcraft",
}
COMPARISON: dict[str, Any] = {
    "baseline": "base",
    "confidence": 0.95,
    "method": "bootstrap",
    "rows": [
        {"name": "base", "n": 2, "reward": INTERVAL, "success": INTERVAL, "difference": None},
        {
            "name": "sft",
            "n": 2,
            "reward": INTERVAL,
            "success": INTERVAL,
            "difference": {**INTERVAL, "n": 2, "p_value": 0.04},
        },
    ],
}


def test_healthy_episodes_pass(tmp_path: Path) -> None:
    rows = [
        EPISODE,
        changed(EPISODE, id="a#1", attempt=1, end="success", success=True, reward=1.0),
        changed(
            EPISODE, id="a#2", attempt=2, report={"verdicts": ["pass"]},
            messages=[*EPISODE["messages"][:-1], {**say("assistant"), "raw": "I think: x"}],
        ),
        changed(EPISODE, id="b#0", task_id="b", end="error", reward=None, error="lost", turns=2),
        changed(
            EPISODE, id="c#0", task_id="c", end="error", reward=None, error="lost", turns=0,
            messages=[say("user")], prompt_length=1, rewards=[],
        ),
    ]  # fmt: skip
    assert (
        check("Trajectories", write_rows(tmp_path / "d", "trajectories.jsonl", *rows), RANGE)
        is None
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reward": 1.5}, "field reward: 1.5 is outside the environment's range [0, 1]"),
        ({"reward": float("nan")}, "field reward: expected a number"),
        ({"end": "error", "error": "x"}, "an infrastructure error has no reward"),
        ({"end": "crash"}, '"crash" is not one of success, failure, limit, overflow, error'),
        ({"end": "success"}, "is false although the episode ended in success"),
        ({"id": "b#0"}, "field id: expected 'a#0'"),
        ({"turns": 3}, "is 3, but the agent replied 2 times"),
        ({"rewards": [0.5]}, "1 rewards for 2 turns"),
        ({"origin": {"turns": 1}}, "field origin: expected the trajectory that it continues from"),
        ({"origin": {"id": "b#0", "turns": 3}}, "field origin: expected 0 to 2 turns, found 3"),
        ({"origin": {"id": "b#0", "turns": 1}}, "its 1 turns, and no others, are marked"),
        ({"prompt_length": 1}, "message 1 is the user's, not the agent's first reply"),
        ({"prompt_length": 5}, "no agent reply follows the prompt of 5 messages"),
        ({"prompt_length": 6}, "expected a number from 0 to 5"),
        ({"messages": [say("user"), say("user")]}, "expected assistant, found user"),
        ({"messages": [say("user"), say("robot")]}, "role 'robot' is not one of user, assistant"),
        ({"messages": [say("user"), say("tool")]}, "a result of a function, where none is called"),
        ({"messages": [{"role": "user"}]}, "expected {role, content}"),
        ({"messages": []}, "expected a non-empty list of messages"),
        ({"messages": [say("user"), {**say("assistant"), "raw": "y"}]}, "message 1: raw is the"),
        ({"messages": [say("user"), {**say("assistant"), "raw": 1}]}, "message 1: raw is the"),
        ({"messages": [{**say("user"), "raw": "x"}, say("assistant")]}, "message 0: raw is the"),
        ({"report": [1]}, "field report: expected an object, found [1]"),
        ({"success": 1}, "expected true or false, found 1"),
        ({"source": "human"}, '"human" is not one of expert, policy'),
        ({"task_id": ""}, 'task_id: expected text, found ""'),
        ({"attempt": -1}, "expected a number from 0, found -1"),
    ],
)
def test_faulty_episode_is_named_by_row_and_field(
    tmp_path: Path, fields: dict[str, Any], expected: str
) -> None:
    data = write_rows(
        tmp_path / "d",
        "trajectories.jsonl",
        changed(EPISODE, id="0#0", task_id="0"),
        changed(EPISODE, **fields),
    )
    found = check("Trajectories", data, RANGE)
    assert found is not None
    assert expected in found
    assert "trajectories.jsonl row 2" in found
    assert "row 1" not in found


def test_rows_must_be_unique_json_and_enough(tmp_path: Path) -> None:
    name = "trajectories.jsonl"
    data = tmp_path / "d"
    write_rows(data, name, EPISODE, EPISODE)
    assert "'a#0' is in row 1 already" in str(check("Trajectories", data))
    (data / name).write_text(json.dumps(EPISODE) + "\n{broken\n[1]\n")
    found = str(check("Trajectories", data))
    assert "row 2: not JSON" in found
    assert "row 3: expected an object, found [1]" in found
    (data / name).write_text("[" * 100_000 + "\n")
    assert "row 1: not JSON" in str(check("Trajectories", data))
    (data / name).write_text("\n")
    assert "0 rows; expected at least 1" in str(check("Trajectories", data))
    assert check("Trajectories", data, {"min_rows": 0}) is None
    write_rows(data, name, EPISODE)
    assert "1 rows; expected at least 5" in str(check("Trajectories", data, {"min_rows": 5}))
    (data / name).rename(data / "other.jsonl")
    assert "trajectories.jsonl: the file is missing" in str(check("Trajectories", data))


def test_rows_of_a_task_stand_together(tmp_path: Path) -> None:
    data = write_rows(
        tmp_path / "d",
        "trajectories.jsonl",
        EPISODE,
        changed(EPISODE, id="b#1", task_id="b", attempt=1),
        changed(EPISODE, id="b#0", task_id="b", attempt=0),
        changed(EPISODE, id="a#1", attempt=1),
    )
    found = str(check("Trajectories", data))
    assert "row 3, field attempt: attempts of a task must ascend" in found
    assert "row 4, field task_id: rows of task 'a' are not adjacent" in found


def test_disjoint_inputs_share_no_task(tmp_path: Path) -> None:
    train = write_rows(tmp_path / "train", "trajectories.jsonl", EPISODE)
    test = write_rows(tmp_path / "test", "trajectories.jsonl", EPISODE)
    contract = {"disjoint_from": ["expert"]}
    found = check("Trajectories", test, contract, inputs={"expert": [str(train)]})
    assert "'a' also occurs in the input expert" in str(found)
    assert check("Trajectories", test, contract, inputs={"expert": []}) is None


def test_conversations(tmp_path: Path) -> None:
    row = {
        "id": "1", "task_id": "a", "messages": [say("user"), say("assistant")],
        "prompt_length": 1, "reward": None, "source": "expert",
    }  # fmt: skip
    data = write_rows(tmp_path / "d", "rows.jsonl", row)
    assert check("SFTDataset", data, RANGE) is None
    write_rows(data, "rows.jsonl", changed(row, reward=-1), changed(row, id="2", prompt_length=2))
    found = str(check("SFTDataset", data, RANGE))
    assert "row 1, field reward: -1 is outside" in found
    assert "row 2, field messages: no agent reply follows" in found


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"rejected": PAIR["chosen"]}, "is the same as chosen"),
        ({"chosen": [say("user")]}, "field chosen: message 0: expected assistant, found user"),
        ({"rejected": [say("assistant"), say("user")]}, "does not end with the agent's message"),
        ({"rejected": []}, "expected a non-empty list of messages"),
        ({"rejected_reward": 1.0}, "1 is not above the rejected reward 1"),
        ({"chosen_reward": None}, "field chosen_reward: expected a number, found null"),
        ({"chosen_reward": 2.0}, "2 is outside the environment's range"),
        ({"prompt": [say("user"), say("assistant")]}, "ends with the agent's message"),
        ({"outcome": "tie"}, '"tie" is not one of win, lose, self'),
    ],
)
def test_faulty_pair(tmp_path: Path, fields: dict[str, Any], expected: str) -> None:
    data = write_rows(tmp_path / "d", "pairs.jsonl", PAIR)
    assert check("PreferencePairs", data, RANGE) is None
    write_rows(data, "pairs.jsonl", changed(PAIR, **fields))
    assert expected in str(check("PreferencePairs", data, RANGE))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"n": -1}, "field n: expected a count"),
        ({"n": 0}, "field n: no episode was scored"),
        ({"reward": {**INTERVAL, "mean": 0.9}}, "0.9 lies outside its interval [0.4, 0.6]"),
        ({"success": {**INTERVAL, "mean": 1.5, "high": 2}}, "field success.mean: 1.5 is outside"),
        ({"success": 0.5}, "field success.mean: expected {mean, low, high}, found 0.5"),
        ({"tasks": {"a": {}}}, "field tasks.a: expected {reward, success, attempts}"),
        ({"split": None}, "field split: expected text"),
    ],
)
def test_faulty_metrics(tmp_path: Path, fields: dict[str, Any], expected: str) -> None:
    (tmp_path / "metrics.json").write_text(json.dumps(METRICS))
    assert check("Metrics", tmp_path, RANGE) is None
    (tmp_path / "metrics.json").write_text(json.dumps(changed(METRICS, **fields)))
    assert expected in str(check("Metrics", tmp_path, RANGE))


def test_faulty_comparison(tmp_path: Path) -> None:
    path = tmp_path / "comparison.json"
    path.write_text(json.dumps(COMPARISON))
    assert check("Comparison", tmp_path) is None
    spoilt = changed(COMPARISON, baseline="nobody")
    spoilt["rows"][1]["name"] = "base"
    spoilt["rows"][1]["difference"]["p_value"] = 1.5
    path.write_text(json.dumps(spoilt))
    found = str(check("Comparison", tmp_path))
    assert "'nobody' is no row's name" in found
    assert "two rows bear one name" in found
    assert "row 2, field difference.p_value: 1.5 is no probability" in found


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<!doctype html><p>fine <a href='https://arxiv.org'>link</a>", None),
        ("<p>no doctype", "does not begin with <!doctype html>"),
        ("<!DOCTYPE html><script src='https://cdn.example/x.js'></script>", "from a network"),
        ("<!DOCTYPE html><link rel=stylesheet href=//cdn.example/x.css>", "from a network"),
    ],
)
def test_report_loads_nothing_from_a_network(
    tmp_path: Path, page: str, expected: str | None
) -> None:
    (tmp_path / "index.html").write_text(page)
    found = check("Report", tmp_path)
    assert found is None if expected is None else expected in str(found)


HIDDEN: dict[str, Any] = {
    "id": "a",
    "task_id": "a",
    "split": "train",
    "text": "def f(): return 7",
    "media": "text/x-python",
    "sha256": "7aba48b65d2c41dd70aa94e37aabf4f8e6693473bcb3f259b45134772afbd780",
}


def hidden(folder: Path, *rows: Any) -> Path:
    data = write_rows(folder, "privileged.jsonl", *rows)
    (data / "privileged.jsonl").chmod(0o600)
    return data


def test_hidden_texts(tmp_path: Path) -> None:
    other = changed(HIDDEN, id="b", task_id="b")
    assert check("PrivilegedInformation", hidden(tmp_path / "d", HIDDEN, other)) is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"text": "def f(): return 8"}, "field sha256: is not the digest of `text`"),
        ({"text": "  "}, "field text: expected text that is not empty"),
        ({"text": None}, "field text: expected text that is not empty"),
        ({"id": "a#0"}, 'field id: expected the task\'s, "a"; found "a#0"'),
        ({"media": "image/png"}, 'field media: "image/png" is not one of text/plain'),
        ({"split": None}, "field split: expected text"),
    ],
)
def test_faulty_hidden_text(tmp_path: Path, fields: dict[str, Any], expected: str) -> None:
    said = check("PrivilegedInformation", hidden(tmp_path / "d", changed(HIDDEN, **fields)))
    assert said is not None
    assert expected in said
    assert "def f" not in said


def test_hidden_texts_are_their_owners(tmp_path: Path) -> None:
    data = hidden(tmp_path / "d", HIDDEN)
    (data / "privileged.jsonl").chmod(0o644)
    assert "others may read it: 644, not 600" in (check("PrivilegedInformation", data) or "")
    again = hidden(tmp_path / "e", HIDDEN, HIDDEN)
    assert "is in row 1 already" in (check("PrivilegedInformation", again) or "")


def test_reported_facts_are_held_to_their_meaning(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    assert check("Other", tmp_path, facts={"trained_tokens": 3}) is None
    found = check("Other", tmp_path, facts={"chosen_trained_tokens": 0})
    assert "field chosen_trained_tokens: is 0; at least one token must carry loss" in str(found)


def test_empty_artifact_of_any_type_is_refused(tmp_path: Path) -> None:
    assert "the program wrote no file" in str(check("Anything", tmp_path))


def test_long_lists_of_violations_are_cut(tmp_path: Path) -> None:
    rows = [changed(EPISODE, id=f"{i}#0", task_id=str(i), reward=9) for i in range(500)]
    found = check("Trajectories", write_rows(tmp_path / "d", "trajectories.jsonl", *rows), RANGE)
    assert "and 480 more" in str(found)
    assert len(str(found).splitlines()) == 22


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"task": "a", "score": 0.5, "success": True, "attempt": 1}, None),
        ({"task": "", "score": 0.5}, "row 2, field task: expected the name of a task"),
        ({"task": "a"}, "row 2, field score: is missing; null where it could not be determined"),
        ({"task": "a", "score": "0.5"}, "row 2, field score: expected a number or null"),
        ({"task": "a", "score": 1.5}, "row 2, field score: 1.5 is outside of `range: [0, 1]`"),
        ({"task": "a", "score": 1, "success": 2}, "row 2, field success: expected true, false"),
        ({"task": "a", "score": 1, "reward": 1}, "row 2, field reward: nobody reads it"),
        ([1], "row 2: expected an object"),
    ],
)
def test_scores_of_tasks(tmp_path: Path, row: Any, expected: str | None) -> None:
    data = write_rows(tmp_path / "d", "scores.jsonl", {"task": "b", "score": None}, row)
    found = check("TaskScores", data, RANGE)
    assert found is None if expected is None else expected in str(found)


def test_scores_of_no_task(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "d", "scores.jsonl", {"task": "b", "score": None})
    assert "no task has a score" in str(check("TaskScores", data, RANGE))
