"""Refuses code that model repositories and checkpoints ship: a spec cannot have it run.

For the models' backends and for the servers of models alike.
"""

from __future__ import annotations

from agentc.backend_api import Refusal

REMOTE_CODE = Refusal(
    path="trust_remote_code",
    reason="the trainers and servers of agentc do not run code from model repositories",
    capability="trust_remote_code",
    fix="choose a model whose architecture transformers has built in",
)
"""Of the setting `trust_remote_code: true`."""
