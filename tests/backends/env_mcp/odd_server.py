"""An MCP server that remembers what a session put, and goes wrong where it is told to:

    python odd_server.py [PORT]

over stdio, or over streamable HTTP on a port of this machine.
"""

from __future__ import annotations

import os
import sys
import time

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

server = MCPServer("odd", version="3", instructions="Mind the crash.")
kept: dict[str, list[str]] = {}


@server.tool(description="Keep a word;\n say all that are kept.")
def put(word: str, context: Context) -> str:
    # Over stdio the process is the session; over HTTP the client names it with each request.
    request = context.request_context.request
    session = "" if request is None else request.headers.get("mcp-session-id", "")
    words = kept.setdefault(session, [])
    words.append(word)
    return " ".join(words)


@server.tool()
def go_wrong(how: str) -> str:
    match how:
        case "crash":
            os._exit(5)
        case "hang":
            time.sleep(3600)
        case "tool":
            raise ToolError("gold is no error")
        case "arguments":
            raise MCPError(INVALID_PARAMS, "no such way")
    raise MCPError(-32603, "the server is confused")


@server.tool(structured_output=False)
def draw() -> list[object]:
    return ["a dot", Image(data=b"\x89PNG", format="png")]


if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
