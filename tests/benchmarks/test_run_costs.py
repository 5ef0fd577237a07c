"""What runs of online RL cost, as one table over seeds."""

from __future__ import annotations

import json
import math
from pathlib import Path

from benchmarks.run_costs import RunCost, cost_of, table


def a_run(folder: Path, returns: list[float]) -> Path:
    """The object of a run of four episodes an iteration, as far as it is read."""
    (folder / "data").mkdir(parents=True)
    (folder / "artifact.json").write_text(json.dumps({"cpu_s": 12.6}))
    told = {"trajectories": 4 * len(returns), "steps": 90, "reply_tokens": 180}
    (folder / "data" / "run.json").write_text(json.dumps(told))
    rows = [
        {"trajectories": 4 * (number + 1), "return": {"mean": mean, "sd": 1.0, "n": 4}}
        for number, mean in enumerate(returns)
    ]
    (folder / "data" / "curve.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


def test_a_return_is_reached_when_three_points_have_it_on_average(tmp_path: Path) -> None:
    found = cost_of(a_run(tmp_path / "run", [0, 9, 0, 4, 6, 5, 5]), 5)
    assert found == RunCost(28, 90, 180, 12.6, 24)


def test_a_run_may_never_get_there(tmp_path: Path) -> None:
    assert math.isinf(cost_of(a_run(tmp_path / "run", [0, 9, 0, 4]), 5).reached)


def test_each_seed_has_its_number_and_the_rest_its_range() -> None:
    runs = [RunCost(320, 1500, 3000, 41.7, 96), RunCost(320, 1710, 3100, 40.2, math.inf)]
    assert table({"ppo": runs}, 5)[2:] == [
        "| `ppo` | 320 | 96, never | 1,500 to 1,710 | 3,000 to 3,100 | 40 to 42 |"
    ]
