"""The nearest valid name for what somebody wrote, by edit distance and by the field's synonyms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from agentc.diagnostics.synonyms import folded, synonyms

_MOST = 3
MOST_LISTED = 40
"""Names of a closed list that a message has in full."""
_COMPARISONS = 50_000
_left: ContextVar[int | None] = ContextVar("comparisons left", default=None)


@contextmanager
def bounded_suggestions() -> Iterator[None]:
    """Within it, names are compared so often at most: a spec of thousands of errors over
    thousands of names gets help with the first ones."""
    token = _left.set(_COMPARISONS)
    try:
        yield
    finally:
        _left.reset(token)


def suggestions(written: str, allowed: Iterable[str]) -> tuple[str, ...]:
    """Up to three of `allowed` that the writer may have meant, nearest first; often none."""
    left = _left.get()
    if left is not None and left <= 0:
        return ()
    names = sorted(set(allowed))
    if left is not None:
        _left.set(left - len(names))
    word = folded(written)
    same = [name for name in names if name.lower() == word]
    if same:
        return tuple(same[:_MOST])
    meant = [name for name in synonyms(word) if name in names]
    edits, nearest = _nearest(word, names)
    if meant:
        # What another program calls so is surely meant; a name one letter away may be.
        slips = nearest if edits == 1 else []
        return tuple(dict.fromkeys([*meant, *slips]))[:_MOST]
    if not nearest:
        nearest = [name for name in names if len(word) >= 4 and _contains(word, name)]
    return tuple(nearest[:_MOST])


def _nearest(word: str, names: Sequence[str]) -> tuple[int, list[str]]:
    """The least edit distance and the names at it; none when all are too far."""
    limit = _tolerance(word)
    distances = [(distance(word, name.lower(), limit), name) for name in names]
    near = sorted(pair for pair in distances if pair[0] <= min(limit, len(pair[1]) - 1))
    least = near[0][0] if near else 0
    return least, [name for edits, name in near if edits == least]


def did_you_mean(written: str, allowed: Iterable[str]) -> str | None:
    """The help line for a wrong name, or None when nothing is near."""
    return offer(suggestions(written, allowed))


def offer(names: Iterable[str]) -> str | None:
    """ "did you mean `a` or `b`?", or None for no names."""
    quoted = [f"`{name}`" for name in names]
    return f"did you mean {' or '.join(quoted)}?" if quoted else None


def listed(names: Iterable[str], most: int = MOST_LISTED) -> str:
    """Names for a message: all of a closed list of the language, "`a`, `b` and 3 more" of a
    longer one."""
    quoted = [f"`{name}`" for name in names]
    if len(quoted) > most:
        return f"{', '.join(quoted[:most])} and {len(quoted) - most} more"
    return ", ".join(quoted)


def nearest_first(written: str, names: Iterable[str]) -> list[str]:
    """The names, in their order, but first those that may be meant, then those that share a part
    with what was written: what somebody looks for in a list is likely to be called alike."""
    listed_names = list(names)
    meant = suggestions(written, listed_names)
    word = folded(written)
    parts = {part for part in word.split("_") if len(part) > 2}

    limit = _tolerance(word) + 1

    def apart(name: str) -> bool:
        alike = len(word) > limit and distance(word, name.lower(), limit) <= limit
        return not (alike or parts & set(name.lower().split("_")))

    rest = sorted((name for name in listed_names if name not in meant), key=apart)
    return [*meant, *rest]


def distance(left: str, right: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap neighbours) that make `left` of `right`.

    The optimal string alignment distance; gives up with `limit + 1` once it is exceeded.
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before_last: list[int] = []
    last = list(range(len(right) + 1))
    for row, char in enumerate(left, 1):
        now = [row]
        for column, other in enumerate(right, 1):
            cost = min(last[column] + 1, now[-1] + 1, last[column - 1] + (char != other))
            if row > 1 and column > 1 and char == right[column - 2] and left[row - 2] == other:
                cost = min(cost, before_last[column - 2] + 1)
            now.append(cost)
        if min(now) > limit:
            return limit + 1
        before_last, last = last, now
    return min(last[-1], limit + 1)


def _tolerance(word: str) -> int:
    if len(word) <= 4:
        return 1
    return 2 if len(word) <= 8 else 3


def _contains(written: str, name: str) -> bool:
    if len(name) >= 4 and (written in name or name in written):
        return True
    # `scienceworld` for `sciworld`, `temp_ratio` for `temperature_ratio`: letters left out.
    shorter, longer = sorted((written, name.lower()), key=len)
    return len(shorter) >= 6 and shorter[0] == longer[0] and _is_subsequence(shorter, longer)


def _is_subsequence(shorter: str, longer: str) -> bool:
    letters = iter(longer)
    return all(letter in letters for letter in shorter)
