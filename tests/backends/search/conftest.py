"""Trajectories that trees of this folder's tests stand behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.backends.expert.test_job_expert import CONFIG as EXPERT
from tests.backends.inside.test_same_results import inside
from tests.backends.search.test_job_search import CONFIG


@pytest.fixture
def expert(run_job: Any, tmp_path: Path) -> Any:
    """Expert trajectories of TextCraft's training goals, under prompt seeds of their own."""
    lease = {"environment": inside("textcraft", tmp_path / "account")}
    config = {**EXPERT, "split": "train", "limit": 3, "attempts": 1, "prompt": CONFIG["prompt"]}
    done = run_job(
        "agentc_backends.agents.expert.job_expert", config, leases=lease,
        staging=tmp_path / "expert",
    )  # fmt: skip
    assert done.code == 0, done.output
    return done
