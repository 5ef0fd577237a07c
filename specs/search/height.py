"""How high a place is on a hill whose top is at 0.7: 1 there, 0 two away."""
# /// script
# [tool.agentc]
# inputs = {place = "folder"}
# output = "metrics"
# ///

import json
import sys
from pathlib import Path

stage = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
at = float(Path(stage["inputs"]["place"][0]["folder"], "place.txt").read_text(encoding="utf-8"))
height = max(0.0, 1 - ((at - 0.7) / 2) ** 2)
with Path(stage["output"]["folder"], "scores.jsonl").open("w", encoding="utf-8") as out:
    out.write(json.dumps({"task": "hill", "score": height}) + "\n")
