"""Hands the rows on that are done in few turns."""

import json
import sys
from pathlib import Path

from how_long import turns

stage = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
rows = Path(stage["inputs"]["episodes"][0]["folder"], "trajectories.jsonl")
kept = [row for row in rows.open(encoding="utf-8") if turns(row) < 8]
Path(stage["output"]["folder"], rows.name).write_text("".join(kept), encoding="utf-8")
