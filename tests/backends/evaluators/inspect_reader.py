"""Run by a Python that has inspect: what our reader makes of a log, as JSON (test_inspect.py)."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from agentc_backends.evaluators.inspect_ai.logs import read_log

print(json.dumps(asdict(read_log(Path(sys.argv[1]))), indent=1))
