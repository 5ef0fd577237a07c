"""Declares `serve.openai`: somebody else's OpenAI-compatible endpoint, with rate limits.

The client library honours the limits (`clients/leases.py`). Nothing is started, no checkpoint
is loaded: the endpoint serves what it serves.
"""

from __future__ import annotations

from agentc.backend_api import LeaseDraft, OptionView, ServerBackend
from agentc.kinds.settings import fields_of
from agentc_backends.servers.remote.settings import ClientLimits, RemoteServer
from agentc_backends.software import LIGHT

_TOKEN_VARIABLE = "AGENTC_REMOTE_TOKEN"


def _lease(options: OptionView) -> LeaseDraft:
    key = options.secret("api_key")
    url = options.text("url")
    if key is not None and url.startswith("http://") and not _loopback(url):
        options.refuse(
            "url",
            "an API key would be sent unencrypted",
            fix="use https://, or leave api_key out",
        )
    limits = options.config_of(ClientLimits)
    return LeaseDraft(
        backend=BACKEND.id,
        version=BACKEND.version,
        software=None,
        program=(),
        identity={**options.identity(), "model": options.text("model"), "url": url},
        port="none",
        # Hosted APIs have no health route; the identity check completes one token for real.
        probe="",
        identity_check="model",
        url=url,
        secrets={_TOKEN_VARIABLE: key} if key is not None else {},
        ready_timeout_s=60.0,
        served_name=options.text("model"),
        capabilities=BACKEND.capabilities,
        client={name: value for name, value in limits.items() if value is not None},
    )


def _loopback(url: str) -> bool:
    host = url.split("://", 1)[1].split("/", 1)[0]
    return host.rsplit(":", 1)[0] in ("127.0.0.1", "localhost", "[::1]")


BACKEND = ServerBackend(
    id="serve.openai",
    example="{url: https://api.example.org/v1, model: big}",
    version=1,
    doc="A remote OpenAI-compatible endpoint, with retries and rate limits. It serves what it "
    "serves: the stage's checkpoint is not loaded, and seeds are honoured as far as the provider "
    "does.",
    software=LIGHT,
    lease=_lease,
    fields=fields_of(RemoteServer),
    capabilities=frozenset({"chat", "remote", "vision"}),
)
