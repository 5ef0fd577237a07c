"""What a program is shown of a reply: tokens and log-probabilities where it asked for them, and
not where the recorder did. Neighbours: `recorder.py`, `passing.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WhatIsShown:
    """What a request asked for."""

    token_ids: bool
    logprobs: bool

    @classmethod
    def to_who_asked(cls, body: Mapping[str, Any]) -> WhatIsShown:
        return cls(bool(body.get("return_token_ids")), bool(body.get("logprobs")))

    def of(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """A reply, or an event of one, without the rest."""
        kept = dict(answer)
        if not self.token_ids:
            kept.pop("prompt_token_ids", None)
        if "choices" in kept:
            kept["choices"] = [self._choice(choice) for choice in kept["choices"]]
        return kept

    def _choice(self, choice: Mapping[str, Any]) -> dict[str, Any]:
        kept = dict(choice)
        if not self.token_ids:
            kept.pop("token_ids", None)
        if not self.logprobs and "logprobs" in kept:
            kept["logprobs"] = None
        return kept
