"""The one client library for model servers and environment servers; needs httpx2, nothing else.

`chat.py` talks to OpenAI-compatible servers, `environment.py` to AgentGym-protocol ones. Both share
`transport.py` (one request), `request_policy.py` (when to try again, how fast, which replica) and
`errors.py` (what went wrong, by whose fault); `leases.py` makes them of a job's leases.
"""

from agentc_backends.clients.chat import ChatClient, ChatReply, ScoredToken
from agentc_backends.clients.environment import EnvironmentCalls, EnvironmentClient, StepResult
from agentc_backends.clients.errors import (
    BadRequestError,
    ContextOverflowError,
    EchoedSecretError,
    EnvironmentServerError,
    InfrastructureError,
    ServiceError,
)
from agentc_backends.clients.leases import chat_client
from agentc_backends.clients.request_policy import RateLimits, RetryPolicy
from agentc_backends.clients.transport import Timeouts

__all__ = [
    "BadRequestError",
    "ChatClient",
    "ChatReply",
    "ContextOverflowError",
    "EchoedSecretError",
    "EnvironmentCalls",
    "EnvironmentClient",
    "EnvironmentServerError",
    "InfrastructureError",
    "RateLimits",
    "RetryPolicy",
    "ScoredToken",
    "ServiceError",
    "StepResult",
    "Timeouts",
    "chat_client",
]
