"""Characters that no spec may hold: what YAML forbids, and what deceives the eye or a terminal.

Neighbours: `load.py`, which looks at whole files, and expressions, params and paths, whose values
are text that is shown to people too.
"""

from __future__ import annotations

import re

# In ASCII what YAML forbids and what no value may hold are the same.
_ASCII = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FORBIDDEN = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
# They change the order in which an editor or a terminal shows what follows them.
_REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")
# In a value these, or the control characters, can only come from an escape in double quotes.
_IN_NO_VALUE = f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]|{_REORDERING.pattern}"


def _pattern(of_all: str, text: str) -> re.Pattern[str]:
    # The large classes take milliseconds to compile, and most specs are ASCII.
    return _ASCII if text.isascii() else re.compile(of_all)


def find_unreadable(text: str) -> re.Match[str] | None:
    """The first character that may not stand in a YAML file."""
    return _pattern(_FORBIDDEN, text).search(text)


def find_reordering(text: str) -> re.Match[str] | None:
    """The first character that changes the order in which text is shown."""
    return _REORDERING.search(text)


def forbidden_in_values(text: str) -> tuple[str, str] | None:
    """The code, and in words the character, of the first one that no value may hold: a control
    character, half a surrogate pair, or an override of the writing direction."""
    found = _pattern(_IN_NO_VALUE, text).search(text)
    if found is None:
        return None
    number = f"U+{ord(found[0]):04X}"
    if _REORDERING.match(found[0]):
        return "AGC121", f"character {number}, which changes the order in which text is shown"
    return "AGC122", f"control character {number}"


def strip_forbidden(text: str) -> str:
    """The text with a replacement character for each of those."""
    return _pattern(_IN_NO_VALUE, text).sub("\N{REPLACEMENT CHARACTER}", text)
