"""The fields of a record or of a turn: each one is read, left out by name, or an error.

Neighbours: `turns.py` and `layouts.py`, which read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentc_backends.data.datasets.records import FieldError

BOOKKEEPING = frozenset(
    {
        *("id", "idx", "index", "uuid", "item_id", "prompt_id", "conversation_id"),
        *("source", "dataset", "split"),
    }
)
"""Fields of a record that name it or its origin: counted, and not used."""

_MOST_NAMES = 12
"""Names of fields that an error lists."""

_NOT_USED = {
    **dict.fromkeys(
        ("label", "kto_tag"),
        "marks good and bad replies (KTO), and a row imitates every reply it has",
    ),
    **dict.fromkeys(
        ("image", "images", "video", "videos", "audio", "audios", "objects"),
        "belongs to multimodal data, and rows hold text",
    ),
    **dict.fromkeys(
        ("reasoning_content", "reasoning", "thinking"),
        "`reasoning: think` trains it as <think>...</think> before the reply",
    ),
    "name": "a message has a role and no name",
    "margin": "no trainer reads margins",
}
"""What is to be said of fields that people expect to be used."""


@dataclass(slots=True)
class Ledger:
    """What the reader left out: `ignored`, fields that `ignore_fields` names; `unused`, fields that
    decide nothing (bookkeeping, numbers of calls). Counted by path (`messages.name`)."""

    ignore: frozenset[str] = frozenset()
    ignored: Counter[str] = field(default_factory=Counter)
    unused: Counter[str] = field(default_factory=Counter)


class Fields:
    """An object of a file. It notes which fields are taken; `finish` rejects what is left. Null, ""
    and empty lists say nothing: exports of tables write them where a row has no such field."""

    __slots__ = ("_above", "_ledger", "_left", "_value")

    def __init__(self, value: Mapping[str, Any], ledger: Ledger, above: str = "") -> None:
        self._value, self._ledger, self._above = value, ledger, above
        self._left = dict(value)

    def path(self, name: str) -> str:
        """The name of a field as `ignore_fields` takes it."""
        return self._above + name

    def take(self, name: str) -> Any:
        """The value of a field, None where there is none or `ignore_fields` names it."""
        if name not in self._left or self._above + name in self._ledger.ignore:
            return None
        return self._left.pop(name)

    def has(self, name: str) -> bool:
        """Whether `take` would give something."""
        if name not in self._left:
            return False
        return says_something(self._left[name]) and self._above + name not in self._ledger.ignore

    def among(self, names: frozenset[str]) -> list[str]:
        """Those of several names that the object has (`has`), in its order."""
        if names.isdisjoint(self._left):
            return []
        return [name for name in self._left if name in names and self.has(name)]

    def holds(self, name: str) -> bool:
        """Whether the object has that field, be it empty, and `ignore_fields` does not name it."""
        return self._left.get(name) is not None and self.path(name) not in self._ledger.ignore

    def is_list(self, name: str) -> bool:
        """Whether that field is a list, be it empty."""
        return self.holds(name) and isinstance(self._left[name], list)

    def names(self) -> list[str]:
        """Its fields, in its order."""
        return [*self._value]

    def view(self, name: str) -> Any:
        """The value of a field, which is not taken by that."""
        return self._value.get(name)

    def listed(self) -> str:
        """Its fields, for people."""
        names = ", ".join(f"`{name}`" for name in [*self._value][:_MOST_NAMES])
        more = len(self._value) - _MOST_NAMES
        rest = f" and {more} more" if more > 0 else ""
        return f"its fields are {names}{rest}" if names else "it has no fields"

    def one_of(self, names: Iterable[str]) -> tuple[str, Any]:
        """The first of several names that the object has, with its value; "" and None where it has
        none of them."""
        for name in names:
            if self.has(name):
                return name, self.take(name)
        return "", None

    def unused(self, *names: str) -> None:
        """Count fields that decide nothing here."""
        for name in names:
            if self.has(name):
                self._left.pop(name)
                self._ledger.unused[self.path(name)] += 1

    def finish(self, what: str) -> None:
        """Raises FieldError where a field was not taken, and neither `ignore_fields` names it."""
        unknown = []
        for name, value in self._left.items():
            if not says_something(value):
                continue
            path = self.path(name)
            if path in self._ledger.ignore:
                self._ledger.ignored[path] += 1
            elif name in BOOKKEEPING and not self._above:
                self._ledger.unused[path] += 1
            else:
                unknown.append(name)
        if unknown:
            paths = [self.path(name) for name in unknown]
            raise unread(paths, [_NOT_USED.get(name, "") for name in unknown], what, self._ledger)


def says_something(value: Any) -> bool:
    """False of null, "" and what is empty. False and 0 do say something."""
    return value is not None and value != "" and value != [] and value != {}


def unread(paths: list[str], reasons: list[str], what: str, ledger: Ledger) -> FieldError:
    """The error of fields that nothing reads."""
    listed = ", ".join(
        f"`{path}` ({reason})" if reason else f"`{path}`"
        for path, reason in zip(paths, reasons, strict=True)
    )
    return FieldError(
        f"has {'a field' if len(paths) == 1 else 'fields'} that {what} does not read: {listed}",
        ignoring(paths, ledger.ignore),
        tuple(paths),
    )


def ignoring(paths: Iterable[str], ignored: Iterable[str]) -> str:
    """What to write so that fields are left out, besides those that are."""
    names = ", ".join(sorted({*ignored, *paths}))
    return f"`ignore_fields: [{names}]` leaves {'them' if ',' in names else 'it'} out"
