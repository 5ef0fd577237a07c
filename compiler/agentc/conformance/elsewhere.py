"""`python -m agentc.conformance.elsewhere`: answers the kit's questions in a process of its own.

A list of them is JSON on standard input, the answers JSON on the last line of standard output:
{"load": "module:object"} -> {"modules": [...]}, those that no question before it has loaded;
{"lower": id, "values", "directory"} -> {"text"}.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def main() -> int:
    """0 with the answers printed; a traceback where a backend fails."""
    questions = json.load(sys.stdin)
    print(json.dumps([_load(q["load"]) if "load" in q else _lower(q) for q in questions]))
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
