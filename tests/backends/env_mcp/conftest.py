"""The software stack with the SDK and a server of somebody else's, and rows for its tasks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentc.runtime.software.lock_text import lock_digest

LOCK = Path(__file__).with_name("time_server.lock")
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def time_python() -> Path:
    """The interpreter that has `mcp` and `mcp_server_time`."""
    folder = Path(os.environ.get("AGENTC_SOFTWARE", ROOT / ".agentc" / "software"))
    built = folder / lock_digest(LOCK.read_text())[:16]
    if not (built / "complete.json").exists():
        pytest.skip("the MCP server's environment is not built: make software-long")
    return built / "bin" / "python"
