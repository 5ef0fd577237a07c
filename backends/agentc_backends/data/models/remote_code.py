"""Refuses code that model repositories and checkpoints ship: a spec cannot bring code of its own.

For the models' backends and for the servers of models alike.
"""

from __future__ import annotations

from agentc.backend_api import OptionView, StageView


def refuse_remote_code(view: StageView | OptionView) -> None:
    """Refuse the setting `trust_remote_code: true`."""
    if view.flag("trust_remote_code"):
        view.refuse(
            "trust_remote_code",
            "the trainers and servers of agentc do not run code from model repositories",
            capability="trust_remote_code",
            fix="choose a model whose architecture transformers has built in",
        )
