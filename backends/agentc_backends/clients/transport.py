"""One JSON request with retries: what chat and environment clients share. Servers of this run are
asked through `connections.py`, external endpoints by httpx2.

A reply that holds the endpoint's key is refused before anybody can keep it, and messages about
replies are cleaned of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import httpx2

from agentc.runtime.machine.output_filters import Redactor
from agentc_backends.clients.connections import Connections, RawReply
from agentc_backends.clients.errors import (
    BadRequestError,
    ContextOverflowError,
    EchoedSecretError,
    InfrastructureError,
    ReplyRoomError,
    read_refusal,
    refusal_fields,
)
from agentc_backends.clients.request_policy import (
    RETRIED_STATUSES,
    Patience,
    RateLimits,
    RequestGate,
    RetryPolicy,
    rank_replicas,
    retry_after,
)

_EXCERPT = 300
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds: to connect, and to wait for the next bytes of a reply."""

    connect_s: float = 5.0
    read_s: float = 300.0


class Transport:
    """Sends JSON to one of several replicas, `direct` without a proxy wherever they are; with
    `guarded`, no reply may hold the token. Close it, or use it as a context manager."""

    def __init__(
        self,
        urls: Sequence[str],
        token: str | None,
        *,
        retry: RetryPolicy,
        limits: RateLimits,
        timeouts: Timeouts,
        direct: bool = False,
        guarded: bool = False,
    ) -> None:
        if not urls:
            raise ValueError("a client needs at least one address")
        self._urls = tuple(url.rstrip("/") for url in urls)
        self._lost: set[str] = set()
        """Replicas that could not be reached: asked last, until one of them answers again."""
        self._retry = retry
        self.gate = RequestGate(limits)
        self._guard = Guard(token if guarded else None)
        # The environment's proxies are not for servers of this run.
        addresses = [httpx2.URL(url) for url in self._urls]
        ours = direct or {url.host for url in addresses} <= {"127.0.0.1", "::1", "localhost"}
        self._near: Connections | None = None
        self._far: httpx2.AsyncClient | None = None
        if ours and all(url.scheme == "http" for url in addresses):
            self._near = Connections(token, connect_s=timeouts.connect_s, read_s=timeouts.read_s)
        else:
            self._far = _general_client(token, limits, timeouts, trust_env=not ours)

    async def close(self) -> None:
        if self._near is not None:
            await self._near.close()
        if self._far is not None:
            await self._far.aclose()

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        key: str = "",
        cost: float = 0.0,
        resend: bool = True,
        private: bool = False,
    ) -> Any:
        """The JSON of the reply to a request, tried again by the policy.

        `key` chooses the replica; the next one is tried when it cannot be reached. `cost` is what
        the request is expected to take from the tokens per minute. With `resend` false, only a
        request that surely never reached the service is sent again. With `private`, errors have
        the status, and no word of the reply. Raises InfrastructureError, BadRequestError,
        ContextOverflowError or EchoedSecretError.
        """
        guard = replace(self._guard, private=True) if private else self._guard
        order = self._in_order(key)
        content = None if body is None else json.dumps(body).encode()
        clock = self._retry.clock
        start = began = clock()
        patience = Patience(self._retry)
        sent, tries, reached = 0, 0, 0
        while True:
            base = order[reached % len(order)]
            url = base + path
            sent, tries = sent + 1, tries + 1
            asked: float | None = None
            try:
                async with self.gate.admit(cost):
                    reply = await self._send(method, base, path, content, query)
            except httpx2.HTTPError as error:
                failure = f"{method} {url}: {_described(error, guard)}"
                again = resend or isinstance(error, _NEVER_SENT)
                if isinstance(error, _NEVER_SENT):
                    reached += 1
                    self._lost.add(base)
            else:
                self._lost.discard(base)
                if reply.status < 400:
                    answer = _decoded(reply, method, url, guard)
                    guard.inspect(answer, f"{method} {url}")
                    return answer
                requested = None if body is None else body.get("max_tokens")
                # llama.cpp of 2025 says with a 500 that a prompt is too long.
                long = reply.status == 500 and read_refusal(reply.body) is not None
                if reply.status not in RETRIED_STATUSES or long:
                    raise _refusal(reply, method, url, guard, requested)
                failure = f"{method} {url}: {reply.status} {_excerpt(reply, guard)}"
                asked = retry_after(reply.headers)
                # 429 and 503 say that nothing was done.
                again = resend or reply.status in (429, 503)
                if reply.status == 503 and asked is not None and self._retry.patience_s:
                    again = patience.lasts(base, _finished(reply))
                    start, tries = clock(), tries - 1
                    failure += f"; nothing was finished for {patience.waited_s:.0f} s"
            wait = self._retry.wait(tries, asked, clock() - start) if again else None
            if wait is None:
                took = clock() - began
                raise InfrastructureError(f"{failure} (tries: {sent}, {took:.1f} s)")
            await asyncio.sleep(wait)

    def _in_order(self, key: str) -> list[str]:
        """The replicas as a key ranks them, those that could not be reached last."""
        order = rank_replicas(self._urls, key) if len(self._urls) > 1 else list(self._urls)
        return sorted(order, key=lambda url: url in self._lost)

    async def _send(
        self,
        method: str,
        base: str,
        path: str,
        content: bytes | None,
        query: Mapping[str, str] | None,
    ) -> RawReply:
        if query:
            path += "?" + urlencode(query, quote_via=quote)
        if self._near is not None:
            return await self._near.request(method, base, path, content)
        assert self._far is not None
        headers = {} if content is None else {"Content-Type": "application/json"}
        reply = await self._far.request(method, base + path, content=content, headers=headers)
        return RawReply(reply.status_code, dict(reply.headers), reply.content)


def _general_client(
    token: str | None, limits: RateLimits, timeouts: Timeouts, *, trust_env: bool
) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        headers={} if token is None else {"Authorization": f"Bearer {token}"},
        timeout=httpx2.Timeout(
            timeouts.read_s, connect=timeouts.connect_s, pool=None, write=timeouts.read_s
        ),
        limits=httpx2.Limits(
            max_connections=limits.concurrency,
            max_keepalive_connections=limits.concurrency,
            # A kept connection that the server closes at the same moment is an error to us.
            keepalive_expiry=60.0,
        ),
        trust_env=trust_env,
    )


def _described(error: httpx2.HTTPError, guard: Guard) -> str:
    # What is no reply of HTTP is quoted by its error.
    said = str(error) if isinstance(error, _NEVER_SENT) else guard.clean(str(error))
    return f"{type(error).__name__}: {said}" if str(error) else type(error).__name__


def _excerpt(reply: RawReply, guard: Guard) -> str:
    return guard.clean(reply.text)[:_EXCERPT]


def _decoded(reply: RawReply, method: str, url: str, guard: Guard) -> Any:
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError) as error:
        excerpt = _excerpt(reply, guard)
        why = None if guard.private else error
        raise InfrastructureError(f"{method} {url}: the reply is not JSON: {excerpt}") from why


def _finished(reply: RawReply) -> int | None:
    """What a busy server counts as finished, where it says so."""
    try:
        body = json.loads(reply.body)
    except (ValueError, RecursionError):
        return None
    found = body.get("finished") if isinstance(body, dict) else None
    return found if isinstance(found, int) else None


def _refusal(
    reply: RawReply, method: str, url: str, guard: Guard, requested: int | None
) -> BadRequestError:
    """The error of a reply that refuses; `requested` is the request's `max_tokens`."""
    fields, said = refusal_fields(reply.body)
    message = guard.clean(said or _excerpt(reply, guard))
    kind: Callable[..., BadRequestError] = BadRequestError
    length = read_refusal(reply.body, requested)
    if length is not None:
        kind = ContextOverflowError
        if length.fits and requested:
            kind = partial(ReplyRoomError, room=length.room)
    code, param = fields.get("code"), fields.get("param")
    return kind(
        f"{method} {url}: {reply.status} {message}",
        status=reply.status,
        code=None if code is None else guard.clean(str(code)),
        param=None if param is None else guard.clean(str(param)),
    )


_KEPT_BACK = "(what it says is kept back: it may hold what nobody may see)"


@dataclass(frozen=True, slots=True)
class Guard:
    """Of one endpoint's key; without one it lets everything pass. With `private`, no message has a
    word of what the endpoint says."""

    key: str | None
    private: bool = False
    _redactor: Redactor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_redactor", Redactor([] if self.key is None else [self.key]))

    def clean(self, text: str) -> str:
        """The text without the key. Clean before cutting: a part of it is not recognised."""
        if self.private:
            return _KEPT_BACK
        return self._redactor.clean_text(text)

    def inspect(self, answer: object, where: str) -> None:
        """Raise EchoedSecretError when a decoded reply holds the key, plain or as `Redactor`
        knows it. Raises InfrastructureError when it cannot be looked through."""
        if not self._redactor.secrets:
            return
        # Written anew, so that no escape of JSON hides a letter.
        try:
            text = json.dumps(answer, ensure_ascii=False)
        except RecursionError:
            raise InfrastructureError(f"{where}: the reply is nested too deeply") from None
        if self._redactor.holds(text):
            raise EchoedSecretError(
                f"{where}: the reply holds the key that the endpoint was sent; nothing of it was "
                "kept. Look at the address (`agentc check` lists where each secret goes), replace "
                "the key if others may have seen it, and run again: what is finished stays. A key "
                "that is an ordinary word is found in ordinary replies; take a longer one"
            )
