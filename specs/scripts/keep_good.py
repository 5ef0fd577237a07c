"""Keeps the best attempt at each task, where its reward is high enough and it is short enough."""
# /// script
# [tool.agentc]
# inputs = {episodes = "trajectories"}
# params = {min_reward = 1.0, most_turns = 8}
# output = "trajectories"
# ///

import json
import sys
from pathlib import Path

stage = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
params = stage["params"]
best: dict[str, dict[str, object]] = {}
for given in stage["inputs"]["episodes"]:
    with Path(given["folder"], "trajectories.jsonl").open(encoding="utf-8") as rows:
        for row in map(json.loads, rows):
            good = row["reward"] is not None and row["reward"] >= params["min_reward"]
            known = best.get(row["task_id"])
            if (
                good
                and row["turns"] <= params["most_turns"]
                and (known is None or row["turns"] < known["turns"])
            ):
                best[row["task_id"]] = row
with Path(stage["output"]["folder"], "trajectories.jsonl").open("w", encoding="utf-8") as out:
    out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in best.values())
print("kept", len(best), "tasks")
