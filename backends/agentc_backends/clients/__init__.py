"""The one client library for model servers and environment servers; needs httpx2, nothing else.

`chat.py` talks to OpenAI-compatible servers, `environment.py` to AgentGym-protocol ones
(`calls.py`: its calls, which an environment in the same process answers too). Both share
`transport.py` (one request), `retry.py` (when to try again), `limits.py` (how fast), `routing.py`
(which replica), `guard.py` (keys that come back) and `errors.py` (what went wrong, by whose
fault).
"""

from agentc_backends.clients.calls import EnvironmentCalls
from agentc_backends.clients.chat import ChatClient, ChatReply, ScoredToken
from agentc_backends.clients.environment import EnvironmentClient, StepResult
from agentc_backends.clients.errors import (
    BadRequestError,
    ContextOverflowError,
    EchoedSecretError,
    EnvironmentServerError,
    InfrastructureError,
    ServiceError,
)
from agentc_backends.clients.leased import chat_client
from agentc_backends.clients.limits import RateLimits
from agentc_backends.clients.retry import RetryPolicy
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
