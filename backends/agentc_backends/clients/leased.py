"""Clients for leased servers, as described in a job file (contracts.md, section 3).

Neighbours: `chat.py`, `environment.py`, `replicated.py`; `servers/remote/backend.py` writes the
settings that are read here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from agentc_backends.clients.calls import EnvironmentCalls
from agentc_backends.clients.chat import ChatClient
from agentc_backends.clients.embeddings import EmbeddingClient
from agentc_backends.clients.environment import EnvironmentClient
from agentc_backends.clients.limits import RateLimits
from agentc_backends.clients.replicated import ReplicatedEnvironment
from agentc_backends.clients.retry import RetryPolicy
from agentc_backends.clients.transport import Timeouts, Transport

REMOTE_TOKEN = "AGENTC_REMOTE_TOKEN"
"""What a remote endpoint's lease calls its key; the job file says which variable holds it."""
# A local server that refuses connections is dead: waiting longer would only delay the news. One
# that is busy has all of this run's work before it, and finishes some of it within the longest that
# a call may last: an environment that asks a model waits so long for the reply.
_LONGEST_CALL_S = Timeouts().read_s
LOCAL_RETRY = RetryPolicy(attempts=4, base_s=0.2, cap_s=1.0, patience_s=_LONGEST_CALL_S + 60.0)


def chat_client(lease: Mapping[str, Any], *, concurrency: int) -> ChatClient:
    """A client of the server behind `job.leases["policy"]`, with at most `concurrency` requests
    in flight (fewer when the lease says so)."""
    urls, token, words = _service(lease, concurrency)
    return ChatClient(urls, token, lease["model"], **words)


def embedding_client(lease: Mapping[str, Any], *, concurrency: int) -> EmbeddingClient:
    """A client of the server behind `leases["scorer"]`, which makes features of pictures."""
    urls, token, words = _service(lease, concurrency)
    transport = Transport(
        [url.rstrip("/").removesuffix("/v1") for url in urls], token, timeouts=Timeouts(), **words
    )
    return EmbeddingClient(transport, lease["model"])


def _service(
    lease: Mapping[str, Any], concurrency: int
) -> tuple[list[str], str | None, dict[str, Any]]:
    """Where a model server is, its token, and how to ask it."""
    settings: Mapping[str, Any] = lease.get("client") or {}
    remote = "log" not in lease
    token = token_of(lease)
    limits = RateLimits(
        requests_per_minute=settings.get("requests_per_minute"),
        tokens_per_minute=settings.get("tokens_per_minute"),
        concurrency=min(concurrency, settings.get("concurrency") or concurrency),
    )
    retry = RetryPolicy(attempts=settings.get("attempts", 8)) if remote else LOCAL_RETRY
    # The key of a remote endpoint outlives the run; a token of ours does not.
    words = {"retry": retry, "limits": limits, "direct": not remote, "guarded": remote}
    return lease.get("urls") or [lease["url"]], token or None, words


def token_of(lease: Mapping[str, Any]) -> str | None:
    """What a leased server is asked with: its token, or the key of a remote endpoint."""
    return lease["token"] or (_key_of(lease) if "log" not in lease else None)


def _key_of(lease: Mapping[str, Any]) -> str | None:
    """The key of a remote endpoint, from the variable that is this lease's alone."""
    variable = (lease.get("secrets") or {}).get(REMOTE_TOKEN)
    return None if variable is None else os.environ.get(variable)


def environment_client(lease: Mapping[str, Any], *, concurrency: int) -> EnvironmentCalls:
    """A client of the server behind `job.leases["environment"]`, or of its copies."""
    clients = [
        EnvironmentClient(
            url,
            lease["token"] or None,
            retry=LOCAL_RETRY,
            limits=RateLimits(concurrency=concurrency),
            direct="log" in lease,
        )
        for url in lease.get("urls") or [lease["url"]]
    ]
    return clients[0] if len(clients) == 1 else ReplicatedEnvironment(clients)
