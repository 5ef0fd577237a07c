"""What a run of RL publishes, told apart by its bytes. Neighbours: `tests/torch/online_rl/runs.py`,
`online_kills.py`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from agentc.program.job import read_rows


def digests(root: Path) -> dict[str, str]:
    """Of all that is published, with the seconds left out."""
    found = {}
    for path in sorted((root / "data").rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if path.name == "curve.jsonl":
                rows = [{**row, "seconds": None} for row in read_rows(path)]
                content = json.dumps(rows).encode()
            name = str(path.relative_to(root / "data"))
            found[name] = hashlib.sha256(content).hexdigest()
    return found
