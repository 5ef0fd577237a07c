"""Hands the rows on that are done in few turns."""
# /// script
# [tool.agentc]
# inputs = {episodes = "trajectories"}
# params = {most_turns = 8}
# output = "trajectories"
# ///

import json
import sys
from pathlib import Path

stage = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
rows = Path(stage["inputs"]["episodes"][0]["folder"], "trajectories.jsonl")
most = stage["params"]["most_turns"]
kept = [row for row in rows.open(encoding="utf-8") if json.loads(row)["turns"] <= most]
Path(stage["output"]["folder"], rows.name).write_text("".join(kept), encoding="utf-8")
