"""Lines of a text as YAML counts them; every place in a diagnostic relies on it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from agentc.diagnostics.span import Source

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def split_lines(text: str) -> list[str]:
    """The lines without their breaks; a text that ends in a break has an empty last line."""
    return _BREAK.split(text)


@dataclass(slots=True)
class KeptLines:
    """The lines of sources; each source is split once, however many diagnostics quote it."""

    _kept: dict[int, tuple[Source, list[str]]] = field(default_factory=dict)

    def of(self, source: Source) -> list[str]:
        """The lines of a source."""
        known = self._kept.get(id(source))
        if known is None:
            # The source is kept too: an id is another's once its object is gone.
            known = self._kept[id(source)] = source, split_lines(source.text)
        return known[1]
