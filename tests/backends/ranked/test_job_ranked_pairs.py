"""The job that draws pairs by rank: files in, pairs.jsonl out, by its contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.backends.ranked.test_ranked_pairs import FOUR, turn

from agentc.runtime.contracts.artifacts import check_artifact

MODULE = "agentc_backends.data.ranked.job_ranked_pairs"
CONFIG = {
    "ranking": "advantage",
    "draw": "halves",
    "pairs_per_turn": 4,
    "replacement": True,
    "dedup": True,
    "order": "hash",
    "margin": 0.0,
    "seed": 0,
}


def ranked(folder: Path, *rows: dict[str, Any]) -> dict[str, list[Path]]:
    folder.mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "turns.jsonl").write_text(lines, encoding="utf-8")
    return {"turns": [folder]}


def test_pairs_keep_their_contract(run_job: Any, tmp_path: Path) -> None:
    cut = turn(FOUR, "t#1@0")
    cut["candidates"][1]["cut"] = True
    done = run_job(MODULE, CONFIG, inputs=ranked(tmp_path / "in", turn(FOUR), cut))
    assert done.code == 0, done.output
    check_artifact("PreferencePairs", done.data, {}, {}, done.facts)
    pairs = done.rows("pairs.jsonl")
    assert done.facts["pairs"] == len(pairs)
    assert done.facts["drawn"] == 8
    assert done.facts["dropped"]["duplicate"] == 8 - len(pairs)
    # The end of a reply that was cut is nothing that the policy wrote.
    marked = [p for p in pairs if p["chosen_id"] == "t#1@0:1"]
    assert marked
    assert all(pair["chosen"][0]["cut"] for pair in marked)


def test_no_pair_at_all_fails_or_is_published(run_job: Any, tmp_path: Path) -> None:
    given = ranked(tmp_path / "in", turn((0.5, 0.5)))
    done = run_job(MODULE, CONFIG, inputs=given)
    assert done.code == 1
    assert "not one pair came out" in done.output
    wanted = {**CONFIG, "on_empty": "publish"}
    done = run_job(MODULE, wanted, inputs=given, staging=tmp_path / "published")
    assert done.code == 0, done.output
    check_artifact("PreferencePairs", done.data, {"min_rows": 0}, {}, done.facts)


def test_a_policy_that_repeats_itself_is_told(run_job: Any, tmp_path: Path) -> None:
    done = run_job(MODULE, CONFIG, inputs=ranked(tmp_path / "in", turn((0.1, 0.2))))
    assert done.code == 0, done.output
    assert (done.facts["pairs"], done.facts["dropped"]["duplicate"]) == (1, 3)
    assert "3 of 4 drawn pairs were left out (duplicate 3)" in done.output
