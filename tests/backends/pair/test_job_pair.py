"""The pair job: files in, pairs.jsonl out, and a failure with the counts when nothing pairs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agentc.runtime.contracts.artifacts import check_artifact
from agentc.runtime.store.digests import content_digest

CONFIG = {
    "margin": 0.0,
    "on_tie": "drop",
    "on_null": "drop",
    "directions": "both",
    "max_extra_rounds": 5,
    "prompt_from": "winner",
    "sources": "expert",
    "max_per_task": None,
    "contrast": "trajectory",
    "seed": 0,
}
MODULE = "agentc_backends.data.pair.job_pair"


def trajectories(folder: Path, reward: float, reply: str) -> Path:
    row = {
        "id": "a#0",
        "task_id": "a",
        "attempt": 0,
        "prompt_seed": 0,
        "messages": [
            {"role": "user", "content": "craft a stick"},
            {"role": "assistant", "content": reply},
        ],
        "prompt_length": 1,
        "reward": reward,
        "end": "success" if reward else "failure",
    }
    folder.mkdir()
    (folder / "trajectories.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    return folder


def inputs(tmp_path: Path, explored: float) -> dict[str, list[Path]]:
    return {
        "expert": [trajectories(tmp_path / "expert", 1.0, "Action: é")],
        "rollouts": [trajectories(tmp_path / "explored", explored, "Action: no")],
    }


def test_pairs_are_written_with_facts_that_count(run_job: Any, tmp_path: Path) -> None:
    done = run_job(MODULE, CONFIG, inputs=inputs(tmp_path, 0.0))
    assert done.code == 0, done.output
    [pair] = done.rows("pairs.jsonl")
    assert pair["chosen"] == [{"role": "assistant", "content": "Action: é"}]
    assert done.facts["lose"] == 1
    assert done.facts["pairs"] == 1


def test_an_empty_result_is_published_where_that_is_wanted(run_job: Any, tmp_path: Path) -> None:
    given = inputs(tmp_path, 1.0)
    done = run_job(MODULE, {**CONFIG, "on_empty": "publish"}, inputs=given)
    assert done.code == 0, done.output
    assert done.rows("pairs.jsonl") == []
    assert (done.facts["pairs"], done.facts["tie"]) == (0, 1)
    assert "not one pair came out" in done.output
    check_artifact("PreferencePairs", done.data, {"min_rows": 0}, {}, done.facts)


def test_a_side_that_was_acted_without_all_of_its_turns_is_counted(
    run_job: Any, tmp_path: Path
) -> None:
    """The expert's trajectory has the same id, and never forgets."""
    given = inputs(tmp_path, 0.0)
    whole = run_job(MODULE, CONFIG, inputs=given, staging=tmp_path / "whole")
    assert whole.facts["forgotten"] == 0
    assert "warning" not in whole.output
    path = given["rollouts"][0] / "trajectories.jsonl"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"forgotten": 3}))
    short = run_job(MODULE, CONFIG, inputs=given, staging=tmp_path / "short")
    assert short.facts["forgotten"] == 1
    told = "1 of 1 pairs have a side whose policy no longer saw all of its turns"
    assert f"warning: {told}" in short.output
    assert short.facts["warnings"][0].startswith(told)


def test_no_pairs_is_a_failure_that_shows_the_counts(run_job: Any, tmp_path: Path) -> None:
    done = run_job(MODULE, CONFIG, inputs=inputs(tmp_path, 1.0))
    assert done.code == 1
    assert "not one pair" in done.output
    assert "tie 1" in done.output
    assert not (done.data / "pairs.jsonl").exists()


def test_a_setting_that_the_program_does_not_know_fails(run_job: Any, tmp_path: Path) -> None:
    done = run_job(MODULE, {**CONFIG, "typo": 1}, inputs=inputs(tmp_path, 0.0))
    assert done.code != 0
    assert "typo" in done.output


def published(folder: Path, run_job: Any, **changes: Any) -> Path:
    """The authors' records of WebShop through the job of a data set: goal 7 by two experts, 8 by
    one."""
    folder.mkdir()
    said = [("human", "Interact."), ("gpt", "OK"), ("human", "a lamp"), ("gpt", "Action: buy")]
    turns = [{"from": who, "value": text} for who, text in said]
    records = [
        {"id": number, "reward": reward, "source": "human", "conversations": turns}
        for number, reward in ((7, 0.75), (7, 1.0), (8, 0.5))
    ]
    (folder / "webshop_sft.json").write_text(json.dumps(records), encoding="utf-8")
    config = {
        "path": str(folder / "webshop_sft.json"),
        "digest": content_digest(folder / "webshop_sft.json"),
        "format": "sharegpt",
        "on_malformed": "error",
        "limit": None,
        "seed": 0,
        "task_ids": "eto_webshop",
        "prompt_length": 3,
        **changes,
    }
    done = run_job("agentc_backends.data.datasets.job_path", config)
    assert done.code == 0, done.output
    return Path(done.data)


def acted(folder: Path, **rewards: float) -> Path:
    """Explorations of goals by their number, under the same instruction."""
    folder.mkdir()
    said = ["Interact.", "OK", "a lamp", "Action: leave"]
    messages = [
        {"role": "assistant" if place % 2 else "user", "content": text}
        for place, text in enumerate(said)
    ]
    rows = [
        {
            "id": f"{task}#0",
            "task_id": task,
            "attempt": 0,
            "prompt_seed": 0,
            "messages": messages,
            "prompt_length": 3,
            "reward": reward,
            "end": "failure",
        }
        for task, reward in rewards.items()
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "trajectories.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_published_trajectories_are_an_expert(run_job: Any, tmp_path: Path) -> None:
    given = {
        "expert": [published(tmp_path / "given", run_job)],
        "rollouts": [acted(tmp_path / "explored", webshop_7=0.0, webshop_8=0.6, webshop_9=0.0)],
    }
    done = run_job(MODULE, CONFIG, inputs=given)
    assert done.code == 0, done.output
    lose, win = done.rows("pairs.jsonl")
    assert [m["content"] for m in lose["prompt"]] == ["Interact.", "OK", "a lamp"]
    assert (lose["chosen_reward"], lose["rejected_reward"]) == (0.75, 0.0)
    assert (win["outcome"], win["chosen"][0]["content"]) == ("win", "Action: leave")
    assert done.facts["skipped"] == {"no_expert": 1}
    check_artifact("PreferencePairs", done.data, {}, {}, done.facts)


def test_ids_that_never_meet_are_named(run_job: Any, tmp_path: Path) -> None:
    given = {
        "expert": [published(tmp_path / "given", run_job, task_ids="as_written")],
        "rollouts": [acted(tmp_path / "explored", webshop_7=0.0)],
    }
    done = run_job(MODULE, CONFIG, inputs=given)
    assert done.code == 1
    assert "first is of 'webshop_sft:0'; the first explored one is of 'webshop_7'" in done.output
