"""Keeps the key that an endpoint was sent out of all that its replies become, and private replies
out of messages.

A reply that holds the key is refused before anybody can keep it; messages about replies are
cleaned. Used by `transport.py`, of keys for remote endpoints alone, and by environments that ask
one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from agentc.runtime.machine.output_filters import Redactor
from agentc_backends.clients.errors import EchoedSecretError, InfrastructureError

_KEPT_BACK = "(what it says is kept back: it may hold what nobody may see)"


@dataclass(frozen=True, slots=True)
class Guard:
    """Of one endpoint's key; without one it lets everything pass. With `private`, no message has a
    word of what the endpoint says."""

    key: str | None
    private: bool = False
    _redactor: Redactor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_redactor", Redactor([] if self.key is None else [self.key]))

    def clean(self, text: str) -> str:
        """The text without the key. Clean before cutting: a part of it is not recognised."""
        if self.private:
            return _KEPT_BACK
        return self._redactor.clean_text(text)

    def inspect(self, answer: object, where: str) -> None:
        """Raise EchoedSecretError when a decoded reply holds the key, plain or as `redact.py`
        knows it. Raises InfrastructureError when it cannot be looked through."""
        if not self._redactor.secrets:
            return
        # Written anew, so that no escape of JSON hides a letter.
        try:
            text = json.dumps(answer, ensure_ascii=False)
        except RecursionError:
            raise InfrastructureError(f"{where}: the reply is nested too deeply") from None
        if self._redactor.holds(text):
            raise EchoedSecretError(
                f"{where}: the reply holds the key that the endpoint was sent; nothing of it was "
                "kept. Look at the address (`agentc check` lists where each secret goes), replace "
                "the key if others may have seen it, and run again: what is finished stays. A key "
                "that is an ordinary word is found in ordinary replies; take a longer one"
            )
