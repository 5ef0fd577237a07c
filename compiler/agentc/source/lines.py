"""Lines of a text as YAML counts them; every place in a diagnostic relies on it."""

from __future__ import annotations

import re

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def split_lines(text: str) -> list[str]:
    """The lines without their breaks; a text that ends in a break has an empty last line."""
    return _BREAK.split(text)
