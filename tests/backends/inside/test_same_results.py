"""Jobs with the environment in their own process make the files that jobs with its server make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.backends.expert.test_job_expert import CONFIG as EXPERT
from tests.backends.rollout.test_job_rollout import CONFIG as ROLLOUT
from tests.backends.rollout.test_job_rollout import PLACEMENT as ROLLOUT_PLACEMENT
from tests.backends.search.test_job_search import CONFIG as SEARCH
from tests.backends.search.test_job_search import PLACEMENT as SEARCH_PLACEMENT

WORDS = {
    "textcraft": ("-m", "agentc_backends.environments.textcraft.job_serve", "--max-depth", "2"),
    "alfworld": ("-m", "agentc_backends.environments.alfworld.job_serve", "--invented-games", "60"),
    "twenty_questions": (
        "-m", "agentc_backends.environments.guessing_games.job_serve", "--game", "twenty_questions",
    ),
}  # fmt: skip


def inside(name: str, folder: Path, **expect: Any) -> dict[str, Any]:
    """The endpoint of a lease that the program opens itself."""
    folder.mkdir(parents=True, exist_ok=True)
    words = [*WORDS[name], "--port", "0", "--ready-file", str(folder / "none.json")]
    told = {"program": words, "expect": {"name": name, **expect}}
    return {"inside": {**told, "account": str(folder / "account.json")}}


@pytest.fixture
def served(share: Any) -> Any:
    def launch(name: str) -> dict[str, Any]:
        command = [*WORDS[name], "--port", "0", "--ready-file", "READY"]
        lease: dict[str, Any] = share("environment", command, "environment-token").lease
        return lease

    return launch


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "split", "low"),
    [("textcraft", "test", 0.0), ("alfworld", "train", 0.0), ("twenty_questions", "train", -20.0)],
)
def test_experts(
    run_job: Any, served: Any, tmp_path: Path, name: str, split: str, low: float
) -> None:
    module = "agentc_backends.agents.expert.job_expert"
    reach = {"reward_range": [low, 0.0 if low else 1.0], "success_at": 0.0 if low else 1.0}
    config = {**EXPERT, "split": split, "limit": 6, **reach}
    leases = {"environment": inside(name, tmp_path / "a")}
    here = run_job(module, config, leases=leases, staging=tmp_path / "here")
    assert here.code == 0, here.output
    there = run_job(
        module, config, leases={"environment": served(name)}, staging=tmp_path / "there"
    )
    assert there.code == 0, there.output
    assert content(here, "trajectories.jsonl") == content(there, "trajectories.jsonl") != b""
    assert here.facts == there.facts
    assert f'"name": "{name}"' in (tmp_path / "a" / "account.json").read_text("utf-8")


@pytest.mark.slow
def test_rollouts(run_job: Any, served: Any, policy: Any, tmp_path: Path) -> None:
    module, name = "agentc_backends.agents.rollout.job_rollout", "trajectories.jsonl"
    assert_same(run_job, served, policy, tmp_path, module, name, ROLLOUT, ROLLOUT_PLACEMENT)


@pytest.mark.slow
def test_searches(run_job: Any, served: Any, policy: Any, tmp_path: Path) -> None:
    """By snapshots, and with copies verified by a replay."""
    module, config = "agentc_backends.agents.search.job_search", {**SEARCH, "limit": 3}
    placement = {**SEARCH_PLACEMENT, "verify_share": 1.0}
    assert_same(run_job, served, policy, tmp_path, module, "trees.jsonl", config, placement)


def assert_same(
    run_job: Any,
    served: Any,
    policy: Any,
    tmp_path: Path,
    module: str,
    file: str,
    config: Any,
    placement: Any,
) -> None:
    model = policy().lease
    leases = {"policy": model, "environment": inside("textcraft", tmp_path / "a")}
    here = run_job(module, config, placement=placement, leases=leases, staging=tmp_path / "here")
    assert here.code == 0, here.output
    leases = {"policy": model, "environment": served("textcraft")}
    there = run_job(module, config, placement=placement, leases=leases, staging=tmp_path / "there")
    assert there.code == 0, there.output
    assert content(here, file) == content(there, file) != b""


def test_another_environment_than_planned_is_refused(run_job: Any, tmp_path: Path) -> None:
    lease = inside("textcraft", tmp_path / "a", recipes_sha256="0" * 64)
    done = run_job(
        "agentc_backends.agents.expert.job_expert", EXPERT, leases={"environment": lease}
    )
    assert done.code == 1
    assert "not the one that was planned:\n  recipes_sha256: expected 000" in done.output


def content(done: Any, name: str) -> bytes:
    read: bytes = (done.data / name).read_bytes()
    return read
