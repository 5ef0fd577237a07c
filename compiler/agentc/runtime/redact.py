"""Redactor: removes the values of secrets from logs, messages and manifests."""

from __future__ import annotations

from typing import Iterable, List

REPLACEMENT = "[redacted]"
_SHORTEST = 4
"""Shorter values are left alone: replacing `1` everywhere would destroy the log."""


class Redactor:
    """Replaces each secret value. Without secrets it changes nothing."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        values = {secret for secret in secrets if len(secret) >= _SHORTEST}
        # Longest first, so that a secret that contains another one goes as a whole.
        self.secrets: List[bytes] = sorted(
            (value.encode("utf-8") for value in values), key=len, reverse=True
        )

    @property
    def longest(self) -> int:
        """Length in bytes of the longest secret."""
        return max((len(secret) for secret in self.secrets), default=0)

    def clean(self, text: bytes) -> bytes:
        """The text without the values."""
        for secret in self.secrets:
            text = text.replace(secret, REPLACEMENT.encode("ascii"))
        return text

    def clean_text(self, text: str) -> str:
        """The same for str."""
        return self.clean(text.encode("utf-8")).decode("utf-8") if self.secrets else text
