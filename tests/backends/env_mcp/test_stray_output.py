"""What a server prints beside the protocol is reported in one line, without the SDK's traceback."""

from __future__ import annotations

import logging

import pytest

from agentc_backends.environments.mcp.translation import listen


class RefusedLineError(ValueError):
    """As pydantic refuses a line."""

    def __init__(self, line: str) -> None:
        super().__init__(f"1 validation error\n  Invalid JSON [input_value={line!r}]")
        self._line = line

    def errors(self) -> list[dict[str, object]]:
        return [{"type": "json_invalid", "input": self._line}]


def test_lines_that_are_no_messages_are_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    held = listen()
    assert listen() is held
    logger = logging.getLogger("mcp.client.stdio")
    for line in ("starting \x1b[31m up", "x" * 1_000_000, *["starting \x1b[31m up"] * 50):
        try:
            raise RefusedLineError(line)
        except ValueError:
            logger.exception("Failed to parse JSONRPC message from server")
    logger.warning("MCP server process 7 is still alive")
    first, second, third = capsys.readouterr().err.splitlines()
    assert first == (
        "its standard output holds what is no message: "
        '"starting \\u001b[31m up"; a server over stdio prints to standard error'
    )
    assert len(second) < 300
    assert third == "MCP: MCP server process 7 is still alive"
    assert held.last in first
