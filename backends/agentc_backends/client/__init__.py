"""The one client library for model servers and environment servers; needs httpx, nothing else.

`chat.py` talks to OpenAI-compatible servers, `environment.py` to AgentGym-protocol ones
(`calls.py`: its calls, which an environment in the same process answers too). Both share
`transport.py` (one request), `retry.py` (when to try again), `limits.py` (how fast), `routing.py`
(which replica), `guard.py` (keys that come back) and `errors.py` (what went wrong, by whose
fault).
"""

from agentc_backends.client.calls import EnvironmentCalls
from agentc_backends.client.chat import ChatClient, Reply, ScoredToken
from agentc_backends.client.environment import EnvironmentClient, StepResult
from agentc_backends.client.errors import (
    BadRequestError,
    ContextOverflowError,
    EchoedSecretError,
    EnvironmentServerError,
    InfrastructureError,
    ServiceError,
)
from agentc_backends.client.leased import chat_client
from agentc_backends.client.limits import RateLimits
from agentc_backends.client.retry import RetryPolicy
from agentc_backends.client.transport import Timeouts

__all__ = [
    "BadRequestError",
    "ChatClient",
    "ContextOverflowError",
    "EchoedSecretError",
    "EnvironmentCalls",
    "EnvironmentClient",
    "EnvironmentServerError",
    "InfrastructureError",
    "RateLimits",
    "Reply",
    "RetryPolicy",
    "ScoredToken",
    "ServiceError",
    "StepResult",
    "Timeouts",
    "chat_client",
]
