"""What an adapter raises for a text that is no action of the environment behind it."""

from __future__ import annotations


class NotAnActionError(Exception):
    """The text is no action; the message tells the agent what would be one."""
