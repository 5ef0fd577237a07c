"""SWEET-RL's tiny spec at its smoke scale: method, baselines, ablations, controls from one start,
with real servers, trainers and boxes. What it learns at its own size: notes/results.md."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from benchmarks.sweet_seeds import evaluations, table
from smoke import agentc, require_software

pytestmark = [pytest.mark.slow, pytest.mark.long]


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_all_rows_of_the_table_come_from_one_start(repository: Path, tmp_path: Path) -> None:
    require_software("trl.critic")
    store = tmp_path / "store"
    spec = repository / "specs" / "sweet_rl" / "tiny.yaml"
    words = (spec, "--scale", "smoke", "--store", store)
    agentc("run", *words, "--plain")
    jobs = {job["id"]: job for job in json.loads(agentc("plan", *words, "--json"))["jobs"]}
    assert {job["state"] for job in jobs.values()} == {"cached"}
    data = {name: store / "objects" / job["object"] / "data" for name, job in jobs.items()}

    # One start, one collection, one draw of candidates, one scoring by their common reference.
    kinds = Counter(job["kind"] for job in jobs.values())
    assert (kinds["privileged"], kinds["sample"], kinds["critic"]) == (1, 1, 4)
    scored = [name for name in jobs if name.endswith(":reference")]
    assert len({jobs[name]["object"] for name in scored}) == 1

    ranked = rows_of(data["ranked"] / "turns.jsonl")
    by_head = rows_of(data["ranked_by_head"] / "turns.jsonl")
    assert [row["id"] for row in ranked] == [row["id"] for row in by_head]
    for ours, theirs in zip(ranked, by_head, strict=True):
        assert [c["text"] for c in ours["candidates"]] == [c["text"] for c in theirs["candidates"]]
        assert all("reference" in c for c in ours["candidates"])
        assert all(c["critic"] == {"value": c["advantage"]} for c in theirs["candidates"])
    for name in ("pairs", "pairs_random"):
        for pair in rows_of(data[name] / "pairs.jsonl"):
            lengths = sorted(len(pair[side][0]["content"]) for side in ("chosen", "rejected"))
            assert lengths[1] <= 1.5 * lengths[0], "like meets like"

    comparison = json.loads((data["results"] / "comparison.json").read_text("utf-8"))
    assert len(comparison["rows"]) == kinds["evaluate"] == 10
    assert all((row["n_tasks"], row["n_error"]) == (10, 0) for row in comparison["rows"])
    claims = json.loads((data["claims"] / "claims.json").read_text("utf-8"))["claims"]
    assert {claim["verdict"] for claim in claims} == {"not judged"}, "a reduced scale"

    played = evaluations("smoke", 0, store)
    assert len(played) == 10
    for one in played.values():
        assert 0 <= one.formed <= 1
        assert 0 <= one.questions <= 3
        assert len(one.tests) == 10
    assert played["evaluate_start"].formed > 0, "a few dialogues were learned by heart"
    lines = table({stage: [one] for stage, one in played.items()})
    assert lines[0].startswith("1 seed, 10 held-out tasks")
    assert len(lines) == 4 + 10
