"""Post-conditions: each fault is found, named by row and field, and healthy artifacts pass."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentc.runtime.contracts.artifacts import ContractError, check_artifact
from agentc.runtime.contracts.checkpoint_contract import read_header

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


def check(
    artifact: str, data: Path, contract: dict[str, Any] | None = None, **extra: Any
) -> str | None:
    """The message of the violation, or None."""
    try:
        check_artifact(
            artifact, data, contract or {}, extra.get("inputs", {}), extra.get("facts", {})
        )
    except ContractError as error:
        return str(error)
    return None


def write_rows(data: Path, name: str, *rows: Any) -> Path:
    data.mkdir(exist_ok=True)
    (data / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return data


def changed(row: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**copy.deepcopy(row), **fields}


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
        ({"origin": {"turns": 1}}, "field origin: expected the trajectory that it goes on from"),
        ({"origin": {"id": "b#0", "turns": 3}}, "field origin: expected 0 to 2 turns, found 3"),
        ({"origin": {"id": "b#0", "turns": 1}}, "its 1 turns, and no others, are marked"),
        ({"prompt_length": 1}, "message 1 is the user's, not the agent's first reply"),
        ({"prompt_length": 5}, "no agent reply follows the prompt of 5 messages"),
        ({"prompt_length": 6}, "expected a number from 0 to 5"),
        ({"messages": [say("user"), say("user")]}, "expected assistant, found user"),
        ({"messages": [say("user"), say("tool")]}, "role 'tool' is not one of user, assistant"),
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
    assert "'a#0' stands in row 1 already" in str(check("Trajectories", data))
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


def checkpoint(folder: Path) -> Path:
    """A healthy checkpoint of one tensor."""
    folder.mkdir(exist_ok=True)
    for name in ("config.json", "generation_config.json", "tokenizer.json"):
        (folder / name).write_text("{}")
    (folder / "tokenizer_config.json").write_text("{}")
    (folder / "chat_template.jinja").write_text("x")
    (folder / "agentc_chat.json").write_text('{"chat_format": "chatml"}')
    write_weights(folder / "model.safetensors", {"w": 8})
    return folder


def write_weights(path: Path, tensors: dict[str, int]) -> None:
    """Float32 tensors of so many bytes each."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, size in tensors.items():
        header[name] = {"dtype": "F32", "shape": [size // 4], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * end)


def _cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def _scored(folder: Path, ids: list[int], log_probs: list[float | None]) -> None:
    text = json.dumps(
        {"dtype": "float32", "rows": [{"ids": ids, "log_probs": log_probs}], "prompts": []}
    )
    (folder / "agentc_log_probs.json").write_text(text)


def test_a_checkpoint_may_hold_scored_rows(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "d")
    _scored(folder, [1, 2], [None, -0.5])
    assert check("Checkpoint", folder) is None


def _index(folder: Path, placed: dict[str, str]) -> None:
    text = json.dumps({"weight_map": placed})
    (folder / "model.safetensors.index.json").write_text(text)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (_cut, "model.safetensors: not a whole safetensors file"),
        (lambda d: (d / "model.safetensors").write_bytes(b"PK"), "shorter than a header"),
        (lambda d: (d / "model.safetensors").write_bytes(b"\xff" * 64), "the header claims"),
        (lambda d: (d / "model.safetensors").unlink(), "model.safetensors: the file is missing"),
        (lambda d: (d / "tokenizer.json").unlink(), "tokenizer.json: the file is missing"),
        (lambda d: (d / "config.json").write_text("{"), "config.json: not JSON"),
        (lambda d: (d / "config.json").write_text("[" * 100_000), "config.json: not JSON"),
        (lambda d: (d / "model.safetensors.index.json").write_text("[" * 100_000), "weight_map"),
        (lambda d: (d / "agentc_chat.json").write_text("{}"), "field chat_format"),
        (lambda d: (d / "training_args.bin").write_bytes(b"x"), "pickled files are refused"),
        (lambda d: (d / "optimizer.pt").write_bytes(b"x"), "pickled files are refused"),
        (lambda d: _index(d, {"w": "a.safetensors"}), "a.safetensors: the file is missing"),
        (lambda d: _index(d, {"v": "model.safetensors"}), "lacks tensors"),
        (lambda d: (d / "link").symlink_to("/etc/hostname"), "link: is a symbolic link"),
        (lambda d: (d / "agentc_log_probs.json").write_text("[]"), "agentc_log_probs.json"),
        (lambda d: _scored(d, [1, 2], [None]), "row 0 has not one log-probability a token"),
    ],
)
def test_faulty_checkpoint(tmp_path: Path, spoil: Callable[[Path], object], expected: str) -> None:
    folder = checkpoint(tmp_path / "d")
    assert check("Checkpoint", folder) is None
    spoil(folder)
    assert expected in str(check("Checkpoint", folder))


def test_sharded_checkpoint_passes(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "d")
    (folder / "model.safetensors").unlink()
    write_weights(folder / "one.safetensors", {"a": 8})
    write_weights(folder / "two.safetensors", {"b": 4, "c": 4})
    _index(folder, {"a": "one.safetensors", "b": "two.safetensors", "c": "two.safetensors"})
    assert check("Checkpoint", folder) is None


def test_optional_files_may_be_absent(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "d")
    (folder / "chat_template.jinja").unlink()
    assert check("Checkpoint", folder, {"optional_files": ["chat_template.jinja"]}) is None


def test_real_safetensors_header_is_read(tmp_path: Path) -> None:
    """Against the library that trainers write with, where it is installed."""
    safetensors = pytest.importorskip("safetensors.numpy")
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"w": numpy.zeros((2, 3), dtype="float16")}, str(path))
    assert read_header(path)["w"]["shape"] == [2, 3]


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
    assert "stands in row 1 already" in (check("PrivilegedInformation", again) or "")


CRITIC: dict[str, Any] = {
    "parameterisation": "log_ratio",
    "normalisation": "turn",
    "template": "In light that the final answer is: {privileged}.",
    "reference": "model/0123",
    "reference_sees": "privileged",
    "beta": 0.1,
    "objective": "bradley_terry",
}


def critic(folder: Path, head: dict[str, int] | None = None, **fields: Any) -> Path:
    data = checkpoint(folder)
    (data / "agentc_critic.json").write_text(json.dumps({**CRITIC, **fields}))
    if head is not None:
        write_weights(data / "value_head.safetensors", head)
    return data


def test_a_critic_is_a_model_and_what_it_was_trained_by(tmp_path: Path) -> None:
    assert check("CriticCheckpoint", critic(tmp_path / "d")) is None
    assert check("CriticCheckpoint", critic(tmp_path / "e", template=None)) is None
    bare = checkpoint(tmp_path / "f")
    assert "agentc_critic.json: the file is missing" in (check("CriticCheckpoint", bare) or "")
    idle = critic(tmp_path / "g", {"weight": 8})
    assert "value_head.safetensors: nobody reads it" in (check("CriticCheckpoint", idle) or "")
    flat = critic(tmp_path / "h", {"weight": 8}, parameterisation="value_head", pooling="mean")
    assert "expected weight and bias" in (check("CriticCheckpoint", flat) or "")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"normalisation": "sum"}, 'field normalisation: "sum" is not one of turn'),
        ({"objective": None}, "field objective: null is not one of bradley_terry"),
        ({"template": "c is c"}, "field template: expected null, or text with {privileged}"),
        ({"reference": None}, "field reference: expected <kind>/<key>"),
        ({"beta": 0}, "field beta: expected a number above 0"),
        ({"parameterisation": "value_head", "pooling": "mean"}, "value_head.safetensors: the file"),
        ({"parameterisation": "value_head"}, "field pooling: null is not one of mean, last"),
    ],
)
def test_faulty_critic(tmp_path: Path, fields: dict[str, Any], expected: str) -> None:
    assert expected in (check("CriticCheckpoint", critic(tmp_path / "d", **fields)) or "")


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
