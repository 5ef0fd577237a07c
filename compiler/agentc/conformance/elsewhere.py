"""`python -m agentc.conformance.elsewhere`: answers the kit's questions in a process of its own.

The question is JSON on standard input, the answer JSON on the last line of standard output:
{"load": "module:object"} -> {"modules": [...]}, {"lower": id, "values", "directory"} -> {"text"}.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def main() -> int:
    """0 with the answer printed; a traceback where the backend fails."""
    question = json.load(sys.stdin)
    answer = _load(question["load"]) if "load" in question else _lower(question)
    print(json.dumps(answer))
    return 0


def _load(value: str) -> dict[str, Any]:
    import agentc.backend_api  # noqa: F401 - what every backend imports is not its own doing

    before = set(sys.modules)
    importlib.import_module(value.split(":")[0])
    return {"modules": sorted(set(sys.modules) - before)}


def _lower(question: dict[str, Any]) -> dict[str, Any]:
    from agentc.backend_api import load_backends
    from agentc.conformance.bench import Bench
    from agentc.conformance.subject import BackendUnderTest

    table = load_backends()
    bench = Bench(table=table, directory=Path(question["directory"]))
    subject = BackendUnderTest(backend=table.backends[question["lower"]], bench=bench)
    return {"text": subject.lower(question["values"]).text()}


if __name__ == "__main__":
    sys.exit(main())
