"""mix.share: exact counts, the same draw every time, ids that stay unique."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentc.kinds.models import MixSettings
from agentc.runtime.contracts.artifacts import check_artifact
from agentc_backends.data.mix.job_mix import MixError, general_rows, mix


def rules(share: float, of: Any = "total", **changes: Any) -> MixSettings:
    values = {"on_shortage": "error", "seed": 0, **changes}
    return MixSettings(general_share=share, share_of=of, **values)


def row(name: str, **changes: Any) -> dict[str, Any]:
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": name, "loss": False},
        {"role": "user", "content": "seen"},
        {"role": "assistant", "content": name},
    ]
    base = {"id": name, "task_id": name, "messages": messages, "prompt_length": 1}
    return {**base, "reward": None, "source": "dataset", **changes}


def rows(count: int, letter: str) -> list[dict[str, Any]]:
    return [row(f"{letter}{number}") for number in range(count)]


@pytest.mark.parametrize(
    ("agent", "share", "of", "expected"),
    [
        (1000, 0.8, "total", 4000),  # the paper's eta of 0.2, literally
        (1000, 0.2, "total", 250),  # 8 : 2
        (1000, 0.25, "agent", 250),  # the same, said of the agent rows
        (1000, 4.0, "agent", 4000),
        (3, 0.5, "total", 3),
        (10, 0.05, "agent", 1),  # a half is rounded up
        (1, 0.1, "agent", 0),
        (7, 0.3, "total", 3),
    ],
)
def test_how_many_general_rows(agent: int, share: float, of: Any, expected: int) -> None:
    assert general_rows(agent, rules(share, of)) == expected


def test_what_the_policy_no_longer_saw_stays_counted() -> None:
    mixed, _ = mix([[row("x", forgotten=2), row("y")]], [rows(1, "g")], rules(1 / 3))
    assert [each.get("forgotten") for each in mixed] == [2, None, None]
    assert ["forgotten" in each for each in mixed] == [True, False, False]


def test_agent_rows_are_all_kept_and_ids_are_unique() -> None:
    # Two rounds of one experiment name their rows alike.
    mixed, facts = mix([rows(4, "x"), rows(4, "x")], [rows(20, "x")], rules(0.5))
    ids = [each["id"] for each in mixed]
    assert ids[:8] == [f"a{n}/x{k}" for n in range(2) for k in range(4)]
    assert len(set(ids)) == 16
    assert facts["general_rows"] == 8
    assert facts["general_share_of_total"] == 0.5
    assert mixed[0]["messages"][1]["loss"] is False


def test_the_draw_depends_on_the_seed_alone() -> None:
    def drawn(seed: int) -> list[str]:
        found, _ = mix([rows(5, "a")], [rows(50, "g")], rules(0.5, seed=seed))
        return [each["id"] for each in found[5:]]

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)


def test_too_few_general_rows() -> None:
    agent, general = [rows(10, "a")], [rows(3, "g")]
    with pytest.raises(MixError, match="10 general rows belong beside 10 agent rows"):
        mix(agent, general, rules(0.5))
    fewer, facts = mix(agent, general, rules(0.5, on_shortage="fewer"))
    assert len(fewer) == 13
    assert facts["general_wanted"] == 10
    repeated, _ = mix(agent, general, rules(0.5, on_shortage="repeat"))
    uses = Counter(each["messages"][1]["content"] for each in repeated[10:])
    assert sorted(uses.values()) == [3, 3, 4]
    assert len({each["id"] for each in repeated}) == 20


def test_episodes_that_were_none_are_left_out() -> None:
    broken = row("e", end="error")
    silent = row("s", prompt_length=4)
    mixed, facts = mix([[*rows(2, "a"), broken, silent]], [rows(2, "g")], rules(0.5))
    assert len(mixed) == 4
    assert facts["agent_left_out"] == 2
    with pytest.raises(MixError, match="agent inputs hold no conversation"):
        mix([[broken]], [rows(2, "g")], rules(0.5))
    with pytest.raises(MixError, match="general inputs hold no conversation"):
        mix([rows(1, "a")], [[broken]], rules(0.5))


def test_the_best_agent_rows_of_a_task_are_kept() -> None:
    """General rows are drawn beside those that are left."""
    agent = [row(f"a{n}", task_id=f"t{n % 2}", reward=n / 10) for n in range(6)]
    mixed, facts = mix([agent[:3], agent[3:]], [rows(9, "g")], rules(0.5, best_per_task=1))
    assert [each["id"] for each in mixed[:2]] == ["a1/a4", "a1/a5"]
    assert (facts["agent_rows"], facts["general_rows"], facts["agent_not_best"]) == (2, 2, 4)


def test_the_job(tmp_path: Path, run_job: Any) -> None:
    folders = []
    for name, file in (("agent", "trajectories.jsonl"), ("general", "rows.jsonl")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / file).write_text("".join(json.dumps(r) + "\n" for r in rows(6, name)))
        folders.append(folder)
    config = {"general_share": 1 / 3, "share_of": "total", "on_shortage": "error", "seed": 0}
    inputs = {"agent": [folders[0]], "general": [folders[1]]}
    done = run_job("agentc_backends.data.mix.job_mix", config, inputs=inputs)
    assert done.code == 0, done.output
    assert len(done.rows("rows.jsonl")) == 9
    check_artifact("SFTDataset", done.data, {}, {}, done.facts)
    config["general_share"] = 0.9
    done = run_job("agentc_backends.data.mix.job_mix", config, inputs=inputs)
    assert done.code == 1
    assert done.output.startswith("mix: 54 general rows belong beside 6")
