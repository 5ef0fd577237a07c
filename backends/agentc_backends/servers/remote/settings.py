"""Settings of `serve.openai`."""

from __future__ import annotations

from dataclasses import dataclass

from agentc.program.settings import setting


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """What its clients hold to."""

    requests_per_minute: float | None = setting(
        "Requests a minute at most; null: no limit.", None, above=0, identity="placement")
    tokens_per_minute: float | None = setting(
        "Tokens a minute at most, prompts and replies; null: no limit.", None, above=0,
        identity="placement")
    concurrency: int = setting(
        "Requests in flight at most.", 16, minimum=1, identity="placement")
    attempts: int = setting(
        "Tries of a request before it counts as failed.", 8, minimum=1, identity="placement")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteServer(ClientLimits):
    """Settings of the endpoint."""

    url: str = setting(
        "Address of the API, such as `https://api.openai.com/v1`.", pattern="^https?://[^\\s#?@]+$")
    model: str = setting("The model's name there.")
    api_key: str | None = setting(
        "The key, by reference: `{secret: OPENAI_API_KEY}`; null: none is sent.", None, secret=True)
# fmt: on
