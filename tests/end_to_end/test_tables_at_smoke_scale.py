"""Specs of the papers' tables that no other test runs: their whole graphs, with a model that knows
nothing. Each must come to its report, with what its tables need in the artifacts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from smoke import agentc, require_software

pytestmark = [pytest.mark.slow, pytest.mark.long]
METHODS = ("direct_revision", "agent_r")


def ran(spec: Path, store: Path) -> dict[str, Path]:
    """Run the smoke scale; the data of each job by its id."""
    words = (spec, "--scale", "smoke", "--store", store)
    agentc("run", *words, "--plain")
    jobs = {job["id"]: job for job in json.loads(agentc("plan", *words, "--json"))["jobs"]}
    assert not [name for name, job in jobs.items() if job["state"] == "run"]
    return {name: store / "objects" / job["object"] / "data" for name, job in jobs.items()}


def read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


@pytest.mark.parametrize(
    ("name", "suffixes"),
    [("webshop", ("",)), ("alfworld", ("_seen", "_unseen")), ("sciworld", ("_seen", "_unseen"))],
)
def test_baselines_of_eto(
    name: str, suffixes: tuple[str, ...], repository: Path, tmp_path: Path
) -> None:
    require_software("trl.sft")
    if name == "sciworld":
        require_software("env.sciworld")
    data = ran(repository / "specs" / "eto" / f"baselines_{name}.yaml", tmp_path / "store")
    for suffix in suffixes:
        metrics = read(data[f"best_of_10{suffix}"] / "metrics.json")
        assert (metrics["n"], metrics["n_tasks"], metrics["n_error"]) == (30, 3, 0)
        assert metrics["asked"]["best_of(10)"]["mean"] >= metrics["reward"]["mean"]
        rows = [row["name"] for row in read(data[f"results{suffix}"] / "comparison.json")["rows"]]
        best = f"best_of_10{suffix}"
        assert rows == [
            f"evaluate_sft{suffix}",
            best,
            f"{best}, best of 10",
            f"evaluate_rft{suffix}",
        ]


@pytest.mark.parametrize("name", ["multi_task", "direct_revision"])
def test_one_agent_r_for_three_environments(name: str, repository: Path, tmp_path: Path) -> None:
    require_software("xtuner.sft")
    require_software("env.sciworld")
    data = ran(repository / "specs" / "agent_r" / f"{name}.yaml", tmp_path / "store")
    for iteration in (1, 2, 3):
        rows = (data[f"agent_r.{iteration}.mixture"] / "rows.jsonl").read_text("utf-8").splitlines()
        sources = {json.loads(row)["id"].partition("/")[0] for row in rows}
        assert sources >= {"a0", "a1", "a2", "g0"}, "rows of each environment and general ones"
        for environment in ("webshop", "sciworld", "textcraft"):
            metrics = read(data[f"agent_r.{iteration}.{environment}"] / "metrics.json")
            assert (metrics["environment"], metrics["n_error"]) == (environment, 0)
            assert ("asked" in metrics) == (name == "multi_task"), "figure 4 is Agent-R's"
    claims = read(data["claims"] / "claims.json")["claims"]
    assert {claim["verdict"] for claim in claims} == {"not judged"}, "a reduced scale"


@pytest.mark.parametrize("name", ["table3", "table3_webshop", "table3_sciworld"])
def test_the_ability_to_revise(name: str, repository: Path, tmp_path: Path) -> None:
    require_software("xtuner.sft")
    if name == "table3_sciworld":
        require_software("env.sciworld")
    data = ran(repository / "specs" / "agent_r" / f"{name}.yaml", tmp_path / "store")
    revised = [f"{name}.{number}.revision" for name in METHODS for number in (1, 2, 3)]
    cut = set()
    for each in ("revision_base", *revised):
        metrics = read(data[each] / "metrics.json")
        assert (metrics["n"] > 0, metrics["n_error"]) == (True, 0), each
        rows = (data[f"{each}:rollout"] / "trajectories.jsonl").read_text("utf-8").splitlines()
        cut.add(tuple(sorted(str(json.loads(row)["origin"]) for row in rows)))
    assert len(cut) == 1, "all continue from the same cut failures"


def test_pairs_of_steps_and_of_trajectories(repository: Path, tmp_path: Path) -> None:
    require_software("trl.sft")
    data = ran(repository / "specs" / "eto" / "table4.yaml", tmp_path / "store")
    turns = {}
    for name in ("trajectory", "step", "step_gently", "mixture"):
        rows = (data[f"{name}.1.pairs"] / "pairs.jsonl").read_text("utf-8").splitlines()
        pairs = [json.loads(row) for row in rows]
        assert pairs, name
        turns[name] = {sum(m["role"] == "assistant" for m in pair["chosen"]) for pair in pairs}
        assert read(data[f"{name}.1.evaluate"] / "metrics.json")["n_error"] == 0, name
    # Of steps one reply is contrasted, of trajectories all that follow the goal.
    assert turns["step"] == turns["step_gently"] == {1}
    assert max(turns["trajectory"]) > 1
    assert turns["mixture"] >= {1, *turns["trajectory"]}


def test_eto_on_the_real_simulator(repository: Path, tmp_path: Path) -> None:
    require_software("trl.sft")
    require_software("env.sciworld")
    data = ran(repository / "specs" / "eto" / "sciworld.yaml", tmp_path / "store")
    for split in ("seen", "unseen"):
        metrics = read(data[f"eto.1.evaluate_{split}"] / "metrics.json")
        assert (metrics["environment"], metrics["n"], metrics["n_error"]) == ("sciworld", 4, 0)
        assert (data[f"results_{split}"] / "comparison.json").is_file()


def test_frontend_design_of_sweet_rl(repository: Path, tmp_path: Path) -> None:
    """Pages in the boxed browser, compared by a random CLIP that the environment leases."""
    require_software("trl.critic")
    require_software("serve.encoder")
    require_software("env.colbench_frontend")
    data = ran(repository / "specs" / "sweet_rl" / "frontend.yaml", tmp_path / "store")
    for name in ("prefs", "pairs"):
        assert (data[name] / "pairs.jsonl").read_text("utf-8"), name
    evaluations = [name for name in data if name.startswith(("alone_", "evaluate_"))]
    measured = [name for name in evaluations if ":" not in name]
    assert len(measured) == 11
    for name in measured:
        metrics = read(data[name] / "metrics.json")
        assert (metrics["n"], metrics["n_error"]) == (10, 0), name
        assert metrics["asked"]["cosine"] == metrics["reward"], name
    assert read(data["evaluate_gpt_4o"] / "metrics.json")["reward"]["mean"] > 0
    rows = read(data["results"] / "comparison.json")["rows"]
    assert all(row["wins"] is not None for row in rows if row["name"] != "evaluate_gpt_4o")
    claims = read(data["claims"] / "claims.json")["claims"]
    assert {claim["metric"] for claim in claims} == {"cosine", "win_rate"}
    assert {claim["verdict"] for claim in claims} == {"not judged"}, "a reduced scale"


def test_backend_programming_of_sweet_rl(repository: Path, tmp_path: Path) -> None:
    """All arms with their ablations: each ranking has pairs to draw, each agent is measured."""
    require_software("trl.critic")
    data = ran(repository / "specs" / "sweet_rl" / "backend.yaml", tmp_path / "store")
    for arm in ("", "_without_hidden", "_with_head", "_summed"):
        assert (data[f"pairs{arm}"] / "pairs.jsonl").read_text("utf-8"), arm
        made = read(data[f"critic{arm}"] / "agentc_critic.json")
        assert made["parameterisation"] == ("value_head" if arm == "_with_head" else "log_ratio")
        assert (made["template"] is None) == (arm == "_without_hidden")
    evaluations = [name for name in data if name.startswith(("alone_", "evaluate_"))]
    measured = [name for name in evaluations if ":" not in name]
    assert len(measured) == 17
    for name in measured:
        metrics = read(data[name] / "metrics.json")
        assert (metrics["n"], metrics["n_error"]) == (20, 0), name
    claims = read(data["claims"] / "claims.json")["claims"]
    assert {claim["verdict"] for claim in claims} == {"not judged"}, "a reduced scale"


@pytest.mark.parametrize("name", ["twenty_questions", "guess_my_city", "webshop"])
def test_archer_and_filtered_bc_over_three_seeds(
    name: str, repository: Path, tmp_path: Path
) -> None:
    require_software("archer.online_rl")
    data = ran(repository / "specs" / "archer" / f"{name}.yaml", tmp_path / "store")
    for seed in (1, 2, 3):
        rows = read(data[f"results@seed={seed}"] / "comparison.json")["rows"]
        assert [row["name"].partition("@")[0] for row in rows] == [
            "evaluate_start",
            "evaluate_archer",
            "evaluate_filtered_bc",
        ]
        run = read(data[f"archer@seed={seed}"] / "run.json")
        assert (run["algorithm"], run["iterations"]) == ("archer", 3)
    judged = {one["name"]: one for one in read(data["claims"] / "claims.json")["claims"]}
    assert {one["verdict"] for one in judged.values()} == {"not judged"}
    assert judged["gain"]["observed"] is not None
    if name == "twenty_questions":
        # Three iterations of four games; a model that knows nothing does not pass -17.
        assert judged["samples"]["observed"]["n"] == 3
