"""What an MCP server prints beside the protocol, in one line: mostly a `print` that was left in."""

from __future__ import annotations

import json
import logging
import sys

_SDK = "mcp.client.stdio"
_SHOWN = 120


class StrayOutput(logging.Handler):
    """Replaces the SDK's traceback for each such line. `last` is the latest one; each different
    line is reported once."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        errors = getattr(error, "errors", None)
        found = errors()[0].get("input") if callable(errors) else None
        if not isinstance(found, str):
            print(f"MCP: {record.getMessage()}", file=sys.stderr, flush=True)
            return
        self.last = said = f"its standard output holds what is no message: {_short(found)}"
        if said not in self._told and len(self._told) < 10:
            self._told.add(said)
            print(f"{said}; a server over stdio prints to standard error", file=sys.stderr)


def _short(line: str) -> str:
    return json.dumps(line if len(line) <= _SHOWN else line[:_SHOWN] + "...")


def listen() -> StrayOutput:
    """Take over what the SDK logs of the server's output."""
    logger = logging.getLogger(_SDK)
    for handler in logger.handlers:
        if isinstance(handler, StrayOutput):
            return handler
    made = StrayOutput()
    logger.addHandler(made)
    logger.propagate = False
    return made
