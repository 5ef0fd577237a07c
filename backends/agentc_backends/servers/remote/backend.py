"""Declares `serve.openai`: somebody else's OpenAI-compatible endpoint, with rate limits.

The client library honours the limits (`clients/leases.py`). Nothing is started, no checkpoint
is loaded: the endpoint serves what it serves.
"""

from __future__ import annotations

from agentc.backend_api import LeaseDraft, OptionView, ServerBackend
from agentc.kinds.field import REQUIRED, Field, Json, integer, number, secret, string
from agentc_backends.software import LIGHT

FIELDS: tuple[Field, ...] = (
    string("url", "Address of the API, such as `https://api.openai.com/v1`.", REQUIRED,
           pattern="^https?://[^\\s#?@]+$"),
    string("model", "The model's name there.", REQUIRED),
    secret("api_key", "The key, by reference: `{secret: OPENAI_API_KEY}`; null: none is sent."),
    number("requests_per_minute", "Requests a minute at most; null: no limit.", None, above=0,
           nullable=True, identity="placement"),
    number("tokens_per_minute", "Tokens a minute at most, prompts and replies; null: no limit.",
           None, above=0, nullable=True, identity="placement"),
    integer("concurrency", "Requests in flight at most.", 16, minimum=1, identity="placement"),
    integer("attempts", "Tries of a request before it counts as failed.", 8, minimum=1,
            identity="placement"),
)  # fmt: skip
_CLIENT = ("requests_per_minute", "tokens_per_minute", "concurrency", "attempts")
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
    client: dict[str, Json] = {}
    for name in _CLIENT:
        value = options.get(name)
        if value is not None:
            client[name] = value
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
        client=client,
    )


def _loopback(url: str) -> bool:
    host = url.split("://", 1)[1].split("/", 1)[0]
    return host.rsplit(":", 1)[0] in ("127.0.0.1", "localhost", "[::1]")


BACKEND = ServerBackend(
    id="serve.openai",
    version=1,
    doc="A remote OpenAI-compatible endpoint, with retries and rate limits. It serves what it "
    "serves: the stage's checkpoint is not loaded, and seeds are honoured as far as the provider "
    "does.",
    software=LIGHT,
    lease=_lease,
    fields=FIELDS,
    capabilities=frozenset({"chat", "remote", "vision"}),
)
