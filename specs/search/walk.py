"""Goes on from where the round before ended, by a share of the slope of the hill."""
# /// script
# [tool.agentc]
# params = {start = 0.0, stride = 0.1}
# output = "folder"
# ///

import json
import sys
from pathlib import Path

TOP = 0.7

stage = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
before = stage["inputs"].get("before") or []
at = stage["params"]["start"]
if before:
    at = float(Path(before[0]["folder"], "place.txt").read_text(encoding="utf-8"))
at += stage["params"]["stride"] * 2 * (TOP - at)
Path(stage["output"]["folder"], "place.txt").write_text(str(at), encoding="utf-8")
