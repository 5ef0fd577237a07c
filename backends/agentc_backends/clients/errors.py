"""What can go wrong with a service, told apart by who must act.

An `InfrastructureError` says nothing about the agent: an episode that ends in one has no reward.
The others are facts about the request.
"""

from __future__ import annotations


class ServiceError(Exception):
    """Any failure of a call; the message names the address and what it said."""


class InfrastructureError(ServiceError):
    """The service is dead, unreachable, overloaded or too slow, or answers nonsense."""


class BadRequestError(ServiceError):
    """The service refuses the request for good (4xx). `status` is HTTP's, `code` the service's
    own word for it, `param` the field it names."""

    def __init__(
        self, message: str, *, status: int = 400, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param


class ContextOverflowError(BadRequestError):
    """The prompt does not fit into the model's context, or leaves no room for a reply."""


class ReplyRoomError(ContextOverflowError):
    """The prompt fits, with less room behind it than the `max_tokens` of the request: `room`
    tokens, or None where the server does not say how many. Clients ask again with it, once."""

    def __init__(
        self,
        message: str,
        *,
        room: int | None,
        status: int = 400,
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message, status=status, code=code, param=param)
        self.room = room


class EchoedSecretError(ServiceError):
    """A reply holds the key that the endpoint was sent. Asking again would not help."""


class EnvironmentServerError(ServiceError):
    """An environment server reports an error of its own in a reply that looks like success."""


def without_words(error: ServiceError) -> str:
    """What failed, without what the service said, which may quote the request: for requests that
    hold what whoever reads the message is not to know."""
    status = f", status {error.status}" if isinstance(error, BadRequestError) else ""
    return f"{type(error).__name__}{status} (what it said is kept back: it may quote the request)"
