"""Sessions with an MCP server, by the official SDK: one is an episode, and is closed at its end.

The SDK's clients live in tasks of an event loop, which runs in a thread of its own; calls come
from threads of the server's.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

from agentc.runtime.machine.process import MARK_VARIABLE
from agentc_backends.environments.external.launch import (
    Launch,
    check_command_allowed,
    folder_of,
)
from agentc_backends.environments.mcp.translation import ListedTool, listen, result_text

_MOST_PAGES = 100
_GRACE_S = 15.0
"""The SDK ends a process within seven seconds: it waits, terminates, kills."""


class McpSessionError(Exception):
    """The server is gone, cannot be started, or answers what the protocol does not allow."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call came to; `failed` where the tool says so, or the server refuses the arguments."""

    text: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a server says of itself when a session opens."""

    name: str
    version: str
    instructions: str | None
    tools: tuple[ListedTool, ...]


class McpSession:
    """One session, used by one thread at a time; `greeting` is what it began with."""

    greeting: Greeting

    def __init__(self, upstream: McpUpstream) -> None:
        """Opens it. Raises McpSessionError."""
        self._loop, self._timeout_s = upstream.loop, upstream.timeout_s
        self._client: Client | None = None
        self._over = asyncio.Event()
        self._scope: anyio.CancelScope | None = None
        opened: Future[Greeting] = Future()
        asyncio.run_coroutine_threadsafe(self._live(upstream, opened), self._loop)
        try:
            self.greeting = opened.result(self._timeout_s)
        except TimeoutError as error:
            self.close()
            stray = f": {upstream.stray.last}" if upstream.stray.last else ""
            raise McpSessionError(f"no session in {self._timeout_s:g} s{stray}") from error
        except Exception as error:
            raise McpSessionError(f"no session with {upstream.place}: {_why(error)}") from error

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Raises McpSessionError."""
        assert self._client is not None
        asked = self._client.call_tool(name, dict(arguments))
        answer = asyncio.run_coroutine_threadsafe(asked, self._loop)
        try:
            result = answer.result(self._timeout_s)
        except MCPError as error:
            if error.code == INVALID_PARAMS:
                return ToolResult(str(error), failed=True)
            raise McpSessionError(f"`{name}`: {error}") from error
        except TimeoutError as error:
            answer.cancel()
            raise McpSessionError(f"`{name}`: no answer in {self._timeout_s:g} s") from error
        except Exception as error:
            raise McpSessionError(f"`{name}`: {_why(error)}") from error
        said = result.model_dump(mode="json", by_alias=True)
        text = result_text(said["content"], said.get("structuredContent"))
        return ToolResult(text, failed=bool(said.get("isError")))

    def close(self) -> None:
        """Have it end; does not wait for that. May be called twice."""
        # A loop that is closed already has ended it.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.end)

    def end(self) -> None:
        """The same, in the loop."""
        self._over.set()
        if self._client is None and self._scope is not None:
            # Never `Task.cancel`, which breaks into the SDK's shutdown and leaves a process behind.
            self._scope.cancel()

    async def _live(self, upstream: McpUpstream, opened: Future[Greeting]) -> None:
        """Enter and leave the SDK's client in one task, as it demands."""
        upstream.living.add(self)
        try:
            async with AsyncExitStack() as held:
                self._scope = held.enter_context(anyio.CancelScope())
                client = await upstream.client(held)
                tools = await _tools(client)
                about = client.server_info
                self._client = client
                opened.set_result(
                    Greeting(
                        name=about.name if about else "",
                        version=about.version if about else "",
                        instructions=client.instructions,
                        tools=tools,
                    )
                )
                await self._over.wait()
        except Exception as error:
            if opened.done():
                # The episode is over, or its next call says that the session is lost.
                print(f"a session ended with {_why(error)}", file=sys.stderr, flush=True)
            else:
                opened.set_exception(error)
        finally:
            upstream.living.discard(self)
            if not opened.done():
                opened.set_exception(McpSessionError("it was given up"))


class McpUpstream:
    """The server that a spec means: a command for each session, or an address."""

    def __init__(self, launch: Launch | None, url: str | None, *, timeout_s: float) -> None:
        """Raises UpstreamLaunchError where the command may not be run, ValueError where it is not
        said where the server is."""
        self._parameters, self._url = None, url or ""
        if launch is not None:
            check_command_allowed(launch.command)
            self._parameters = _parameters(launch)
        elif url is None:
            raise ValueError("one of `url` and `launch` says where the server is")
        self.place = self._url if launch is None else f"`{' '.join(launch.command)}`"
        self.timeout_s = timeout_s
        self.stray = listen()
        self.loop = asyncio.new_event_loop()
        self.living: set[McpSession] = set()
        """Those that hold a connection; used in the loop alone."""
        threading.Thread(target=self.loop.run_forever, name="sessions", daemon=True).start()

    def begin(self) -> McpSession:
        """A session of its own. Raises McpSessionError."""
        return McpSession(self)

    def end(self) -> None:
        """End what still lives, processes too, and wait for that."""
        ended = asyncio.run_coroutine_threadsafe(self._ended(), self.loop)
        with suppress(TimeoutError):
            ended.result(_GRACE_S)
        self.loop.call_soon_threadsafe(self.loop.stop)

    async def _ended(self) -> None:
        for session in self.living:
            session.end()
        while self.living:
            await asyncio.sleep(0.02)

    async def client(self, held: AsyncExitStack) -> Client:
        """A client that `held` ends. Called in the loop."""
        if self._parameters is not None:
            made = Client(self._parameters, read_timeout_seconds=self.timeout_s)
        else:
            # What the machine routes abroad must not catch a server on this machine.
            http = await held.enter_async_context(
                httpx2.AsyncClient(timeout=self.timeout_s, trust_env=False)
            )
            transport = streamable_http_client(self._url, http_client=http)
            # Later revisions of the protocol have no sessions over HTTP: nothing would be an
            # episode's own.
            made = Client(transport, read_timeout_seconds=self.timeout_s, mode="legacy")
        return await held.enter_async_context(made)


async def _tools(client: Client) -> tuple[ListedTool, ...]:
    found: list[ListedTool] = []
    cursor = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += [ListedTool(t.name, t.description or "", t.input_schema) for t in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return tuple(found)
    raise McpSessionError(f"the server's list of tools has more than {_MOST_PAGES} pages")


def _parameters(launch: Launch) -> StdioServerParameters:
    """`{python}` is the interpreter of this software stack. The SDK hands on HOME, PATH and
    the like, and nothing else of ours."""
    command, *arguments = [word.replace("{python}", sys.executable) for word in launch.command]
    # Some servers order their texts by hash.
    variables = {"PYTHONHASHSEED": "0", **launch.variables}
    if (mark := os.environ.get(MARK_VARIABLE)) is not None:
        # By which the job's wrapper finds what outlives us.
        variables[MARK_VARIABLE] = mark
    return StdioServerParameters(
        command=command, args=arguments, env=variables, cwd=folder_of(launch)
    )


def _why(error: BaseException) -> str:
    """What is told of an exception: of a group its first, which the SDK's task groups make."""
    while inner := getattr(error, "exceptions", ()):
        error = inner[0]
    return str(error) or type(error).__name__
