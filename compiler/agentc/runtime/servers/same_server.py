"""What is one server to several jobs of a session: started once, and counted so by preflight.

Neighbours: `asked.py`, `agentc.runtime.provision`.
"""

from __future__ import annotations

import json
from typing import Any, List, Mapping

from agentc.runtime.servers.asked import needed_specs


def server_identity(job: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """Equal for leases of two jobs that mean one server: everything that it is started with, and
    what it serves, by whatever name (`input`) each job knows that."""
    name = spec.get("input")
    parts: List[Any] = [{**spec, "input": None}, job["inputs"].get(name) if name else None]
    parts += [server_identity(job, each) for each in needed_specs(job, spec)]
    return json.dumps(parts, sort_keys=True)
