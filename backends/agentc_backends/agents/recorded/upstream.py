"""The leased model server, as the recorder asks it: bodies as they are, whole or as a stream.

`client/chat.py` asks with words of our own and puts replies into our own shapes; a program of
others gets the server's reply instead. Neighbour: `recorder.py`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from agentc_backends.clients.guard import Guard
from agentc_backends.clients.leased import token_of
from agentc_backends.clients.limits import RateLimits, RequestGate
from agentc_backends.clients.refusals import read_refusal
from agentc_backends.clients.routing import ranked
from agentc_backends.clients.transport import Timeouts
from agentc_backends.http_library import httpx2

_PATH = "/v1/chat/completions"
_LETTERS_PER_TOKEN = 4


class LeasedModel:
    """A server, or its copies: who asks with the same `affinity` meets the same copy. The rates of
    a remote endpoint are kept; trying again is left to the program's own client."""

    def __init__(self, lease: Mapping[str, Any], *, concurrency: int) -> None:
        settings: Mapping[str, Any] = lease.get("client") or {}
        remote = "log" not in lease
        token = token_of(lease)
        urls = lease.get("urls") or [lease["url"]]
        self._urls = [url.rstrip("/").removesuffix("/v1") for url in urls]
        self.model: str = lease["model"]
        self.guard = Guard(token if remote else None)
        most = min(concurrency, settings.get("concurrency") or concurrency)
        self._gate = RequestGate(
            RateLimits(
                requests_per_minute=settings.get("requests_per_minute"),
                tokens_per_minute=settings.get("tokens_per_minute"),
                concurrency=most,
            )
        )
        waits = Timeouts()
        self._http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx2.Timeout(waits.read_s, connect=waits.connect_s),
            # Proxies are for what is not of this run.
            trust_env=remote,
        )

    async def close(self) -> None:
        await self._http.aclose()

    @asynccontextmanager
    async def chat(self, body: Mapping[str, Any], affinity: str) -> AsyncIterator[httpx2.Response]:
        """The response to a chat request. One whose prompt leaves less room than its `max_tokens`
        is asked again with what is left. Raises httpx2.HTTPError."""
        async with self._asked(body, affinity) as response:
            length = None
            if response.status_code >= 400:
                length = read_refusal(await response.aread(), body.get("max_tokens"))
            if length is None or not length.fits or body.get("max_tokens") is None:
                yield response
                return
        async with self._asked({**body, "max_tokens": length.room}, affinity) as response:
            yield response

    @asynccontextmanager
    async def _asked(
        self, body: Mapping[str, Any], affinity: str
    ) -> AsyncIterator[httpx2.Response]:
        url = ranked(self._urls, affinity)[0] + _PATH
        content = json.dumps(body).encode()
        async with (
            self._gate.admit(len(content) / _LETTERS_PER_TOKEN),
            self._http.stream(
                "POST", url, content=content, headers={"Content-Type": "application/json"}
            ) as response,
        ):
            yield response
