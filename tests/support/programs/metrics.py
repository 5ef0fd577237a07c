"""A job program that writes the metrics.json of its configuration."""

import json
import sys
from pathlib import Path

job = json.loads(Path(sys.argv[-1]).read_text())
(Path(job["out"]) / "metrics.json").write_text(json.dumps(job["config"]["document"]))
