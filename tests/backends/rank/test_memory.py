"""Candidates' tokens are many times what is kept of a turn: no stage from `sample` to `pair` holds
those of all turns at once. Each job finds all of its work done, so that no server is asked."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks.held_memory import HeldMemory
from tests.backends.conftest import job_command, job_environment, write_job
from tests.backends.rank.test_job_rank import NOTES
from tests.backends.ranked.test_job_ranked_pairs import CONFIG as PAIRED
from tests.backends.sample.test_job_sample import CONFIG as SAMPLED

CANDIDATES, TOKENS = 16, 1024
FEW, MANY = 8, 80
MOST = 20 << 20
"""Held, the tokens of the turns that MANY has more would take twice that."""
LEASES = {"policy": {"url": "http://127.0.0.1:9", "token": "", "model": "policy", "log": "log"}}
PLACEMENT = {"concurrency": 4, "error_budget": 0.0}
Rows = Iterator[dict[str, Any]]


def episodes(count: int) -> Rows:
    for number in range(count):
        said = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
        yield {"id": f"t{number}#0", "task_id": f"t{number}", "attempt": 0, "messages": said,
               "prompt_length": 1, "reward": 0.5, "end": "limit"}  # fmt: skip


def turns(count: int) -> Rows:
    for number in range(count):
        replies = [
            {"text": f"reply {place}", "tokens": [*range(1000, 1000 + TOKENS)], "seed": 0,
             "logprob_sum": -1.0 - place, "logprob_n": TOKENS, "stop": "stop"}
            for place in range(CANDIDATES)
        ]  # fmt: skip
        yield {
            "id": f"t{number}#0@0", "task_id": f"t{number}", "attempt": 0, "turn": 0,
            "split": None, "prompt": [{"role": "user", "content": f"{number}?"}],
            "prompt_length": 1, "taken": "!", "reward": 0.5, "candidates": replies,
            "candidates_unique": CANDIDATES, "tokens": {"prompt": 0, "completion": 0},
            "end": "sampled",
        }  # fmt: skip


def scores(count: int) -> Rows:
    for number in range(count):
        given = [{"sum": -2.0 * place, "n": TOKENS} for place in range(CANDIDATES)]
        name = {"id": f"t{number}#0@0", "task_id": f"t{number}", "end": "scored"}
        yield {**name, "scores": given, "tokens": 0}


def written(path: Path, rows: Rows) -> Path:
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    return path.parent


def peak(
    module: str, config: Mapping[str, Any], inputs: Mapping[str, Sequence[Path]], staging: Path
) -> int:
    """Bytes that a job held at most."""
    job = write_job(staging, config, inputs=inputs, placement=PLACEMENT, leases=LEASES)
    command = job_command(module, job)
    process = subprocess.Popen(command, cwd=staging, env=job_environment())
    with HeldMemory(process.pid) as memory:
        assert process.wait() == 0
    return memory.peaks[process.pid]


def peaks(folder: Path, count: int) -> list[int]:
    """Of the three jobs, each of which reads what the one before wrote."""
    sample, rank, pair = (folder / name for name in ("sample", "rank", "pair"))
    played = written(folder / "played" / "trajectories.jsonl", episodes(count))
    written(sample / "work" / "turns.jsonl", turns(count))
    written(rank / "work" / "scores.jsonl", scores(count))
    critic = folder / "critic"
    critic.mkdir()
    (critic / "agentc_critic.json").write_text(json.dumps({**NOTES, "template": None}), "utf-8")
    config = {**SAMPLED, "candidates": CANDIDATES}
    ranked = {"candidates": [sample / "data"], "critic": [critic]}
    agents = "agentc_backends.agents"
    return [
        peak(f"{agents}.sample.job_sample", config, {"rollouts": [played]}, sample),
        peak(f"{agents}.rank.job_rank", {"span": "reply"}, ranked, rank),
        peak("agentc_backends.data.ranked.job_ranked_pairs", PAIRED, {"turns": [rank / "data"]},
             pair),
    ]  # fmt: skip


@pytest.mark.slow
def test_memory_does_not_grow_with_the_candidates(tmp_path: Path) -> None:
    few, many = peaks(tmp_path / "few", FEW), peaks(tmp_path / "many", MANY)
    grown = [other - one for one, other in zip(few, many, strict=True)]
    assert max(grown) < MOST, grown
    assert len((tmp_path / "many/pair/data/pairs.jsonl").read_text().splitlines()) > MANY
