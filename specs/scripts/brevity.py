"""How short episodes are: 1 for one turn, 0 for as many as are allowed or more."""
# /// script
# [tool.agentc]
# inputs = {episodes = "trajectories"}
# params = {limit = 8}
# output = "metrics"
# ///

import json
import sys
from pathlib import Path

stage = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
limit = stage["params"]["limit"]
with Path(stage["output"]["folder"], "scores.jsonl").open("w", encoding="utf-8") as out:
    for given in stage["inputs"]["episodes"]:
        with Path(given["folder"], "trajectories.jsonl").open(encoding="utf-8") as rows:
            for row in map(json.loads, rows):
                brevity = max(0.0, (limit - row["turns"]) / (limit - 1))
                score = None if row["end"] == "error" else brevity
                out.write(json.dumps({"task": row["task_id"], "score": score}) + "\n")
