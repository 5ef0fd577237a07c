"""A spec with all that begins behind a prefix, run as people run it; and what its rules refuse."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import PATIENCE_S
from tests.support.smoke import require_software

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec

SPEC = Path(__file__).with_name("prefixes.yaml")


def placed(folder: Path, text: str | None = None) -> Path:
    spec = folder / SPEC.name
    spec.write_text(SPEC.read_text("utf-8") if text is None else text, "utf-8")
    return spec


class Results:
    """What the stages of a run made."""

    def __init__(self, spec: Path, store: Path) -> None:
        plan = compile_spec(spec, {}, load_backends()).plan
        assert plan is not None
        self._data = {
            job.id: store / "objects" / job.draft.kind / job.key / "data" for job in plan.jobs
        }

    def rows(self, stage: str, name: str) -> list[dict[str, Any]]:
        lines = (self._data[stage] / name).read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def document(self, stage: str, name: str) -> Any:
        return json.loads((self._data[stage] / name).read_text("utf-8"))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    require_software("model.scratch")
    folder = tmp_path_factory.mktemp("prefixes")
    spec, store = placed(folder), folder / "store"
    agentc = str(Path(sys.executable).with_name("agentc"))
    done = subprocess.run(
        [agentc, "run", str(spec), "--store", str(store), "-j", "2"],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        env={**os.environ, "COLUMNS": "120"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return Results(spec, store)


def replies(messages: list[dict[str, Any]]) -> list[str]:
    return [m["content"] for m in messages if m["role"] == "assistant"]


@pytest.mark.slow
def test_step_pairs_share_what_the_expert_did_until_then(results: Results) -> None:
    experts = {row["id"]: row for row in results.rows("expert", "trajectories.jsonl")}
    pairs = results.rows("step_pairs", "pairs.jsonl")
    assert {pair["shared_turns"] for pair in pairs} >= {0, 1}
    for pair in pairs:
        expert, given = experts[pair["chosen_id"]], pair["shared_turns"]
        first = expert["prompt_length"] + 2 * given
        assert pair["prompt"] == [
            {name: value for name, value in m.items() if name in ("role", "content")}
            for m in expert["messages"][:first]
        ]
        assert pair["chosen"] == [expert["messages"][first]]
        assert len(pair["rejected"]) == 1
    # One for each turn of each expert: a wanderer crafts nothing.
    assert len(pairs) == sum(row["turns"] for row in experts.values())


@pytest.mark.slow
def test_mixture_has_the_pairs_of_trajectories_as_well(results: Results) -> None:
    steps = results.rows("step_pairs", "pairs.jsonl")
    mixture = results.rows("mixture", "pairs.jsonl")
    whole = [pair for pair in mixture if "shared_turns" not in pair]
    assert len(whole) == 5
    assert [(pair["chosen"], pair["rejected"]) for pair in mixture if "shared_turns" in pair] == [
        (pair["chosen"], pair["rejected"]) for pair in steps
    ]
    assert {len(pair["chosen"]) for pair in results.rows("rests", "pairs.jsonl")} >= {1, 3}


@pytest.mark.slow
def test_ability_to_revise_is_measured_on_cut_failures(results: Results) -> None:
    failures = {row["id"]: row for row in results.rows("failures", "trajectories.jsonl")}
    rows = results.rows("revision:rollout", "trajectories.jsonl")
    metrics = results.document("revision", "metrics.json")
    assert metrics["n"] == len(rows) == sum(row["reward"] == 0 for row in failures.values()) > 3
    for row in rows:
        given = row["origin"]["turns"]
        assert 1 <= given < failures[row["origin"]["id"]]["turns"]
        assert (
            replies(row["messages"])[: given + 1]
            == (replies(failures[row["origin"]["id"]]["messages"])[: given + 1])
        )
        assert row["turns"] - given <= 4
    assert len({row["origin"]["turns"] for row in rows}) > 1
    assert metrics["step_rewards"] == {
        f"0/{row['origin']['id']}": {
            str(row["origin"]["turns"]): {"reward": row["reward"], "attempts": 1}
        }
        for row in rows
    }


@pytest.mark.slow
def test_paths_of_a_search_are_gone_on_from(results: Results) -> None:
    rows = results.rows("behind_trees", "trajectories.jsonl")
    assert all("@" in row["origin"]["id"] for row in rows)
    assert {row["end"] for row in rows} <= {"limit", "success", "failure"}


@pytest.mark.slow
def test_failures_are_searched_on_from_where_they_are_cut(results: Results) -> None:
    failures = {row["id"]: row for row in results.rows("failures", "trajectories.jsonl")}
    trees = results.rows("searched_behind", "trees.jsonl")
    behind = [row["origin"] for row in results.rows("revision:rollout", "trajectories.jsonl")]
    # The same failures, cut where they are cut for the evaluation: both have the seed 0.
    assert [tree["origin"] for tree in trees] == behind
    for tree in trees:
        given, source = tree["origin"]["turns"], failures[tree["origin"]["id"]]
        assert [turn["reply"] for turn in tree["prefix"]] == replies(
            source["messages"][source["prompt_length"] :]
        )[:given]
        assert tree["messages"] == source["messages"][: source["prompt_length"]]
        assert max(node["depth"] for node in tree["nodes"]) <= 5
    metrics = results.document("answers_behind", "metrics.json")
    assert metrics["n"] == len(trees)
    assert set(metrics["step_rewards"]) == {f"0/{origin['id']}" for origin in behind}
    both = results.rows("behind_both", "trajectories.jsonl")
    assert {row["origin"]["input"] for row in both} == {0, 1}
    assert {row["origin"]["id"].split("@")[0] for row in both if row["origin"]["input"] == 0} <= {
        tree["id"] for tree in trees
    }


@pytest.mark.slow
def test_search_stands_in_the_table_beside_its_policy(results: Results) -> None:
    table = results.document("table", "comparison.json")
    assert [(row["name"], row["n_tasks"]) for row in table["rows"]] == [
        ("greedy", 6),
        ("answers", 6),
    ]
    assert any("the answer of a search" in note for note in table["notes"])


def test_continuing_failures_of_the_test_split_is_no_training_on_it(tmp_path: Path) -> None:
    """The policy of `revision` is shown trajectories of the tasks that it is scored on."""
    found = compile_spec(placed(tmp_path), {}, load_backends())
    assert [each.code for each in found.diagnostics] == []


def test_prefixes_enter_the_key_and_leave_the_others_alone(tmp_path: Path) -> None:
    text = SPEC.read_text("utf-8")

    def key(name: str, changed: str) -> str:
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        (tmp_path / name).mkdir()
        plan = compile_spec(placed(tmp_path / name, changed), {}, load_backends()).plan
        assert plan is not None
        return {job.id: job.key for job in plan.jobs}["steps"]

    plain = key("plain", text)
    assert key("cut", text.replace("cut: every, shortest: 0", "cut: every, shortest: 1")) != plain
    assert key("cut_so", text.replace("shortest: 0}", "shortest: 0, max_reward: null}")) == plain
    other = text.replace(
        "{kind: expert, split: train, limit: 5}", "{kind: expert, split: train, limit: 5, seed: 1}"
    )
    assert key("source", other) != plain
    budget = text.replace(
        "limit: 5, prefixes: expert,", "limit: 5, error_budget: 0.5, prefixes: expert,"
    )
    assert key("budget", budget) == plain
