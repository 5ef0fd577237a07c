"""Folds a long plan into what people read: rounds and cells that repeat each other, and runs of
jobs that nothing happens to, become one line each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentc.plan.diff import Change
from agentc.plan.review import Item, Review, because

_FEWEST_ALIKE = 4
_FEWEST_IDLE = 4
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Consecutive jobs of one round (or outside of rounds: no title). `like` is the title of an
    earlier group that this one repeats, over all of `titles`."""

    title: str
    items: tuple[Item, ...]
    titles: tuple[str, ...] = ()

    @property
    def is_folded(self) -> bool:
        """Whether it stands for several groups that repeat the one before."""
        return len(self.titles) > 0


def groups_of(review: Review) -> list[Group]:
    """The jobs by round, in plan order."""
    found: list[tuple[str, list[Item]]] = []
    for item in review.items:
        title = round_title(item)
        if not found or found[-1][0] != title:
            found.append((title, []))
        found[-1][1].append(item)
    return [Group(title=title, items=tuple(items)) for title, items in found]


def round_title(item: Item) -> str:
    """`eto, round 2`, or nothing outside of rounds."""
    number = item.job.get("round")
    if number is None:
        return ""
    return f"{str(item.job['stage']).split(f'.{number}.')[0]}, round {number}"


def fold_groups(groups: Sequence[Group]) -> list[Group]:
    """Of four or more groups in a row in which the same happens, the first stays, and one that is
    folded stands for the others."""
    folded: list[Group] = []
    start = 0
    while start < len(groups):
        end = start + 1
        if groups[start].title:
            sign = _signature(groups[start])
            while end < len(groups) and groups[end].title and _signature(groups[end]) == sign:
                end += 1
        alike = groups[start:end]
        if len(alike) >= _FEWEST_ALIKE:
            rest = alike[1:]
            items = tuple(item for group in rest for item in group.items)
            titles = tuple(group.title for group in rest)
            folded += [alike[0], Group(title=alike[0].title, items=items, titles=titles)]
        else:
            folded += alike
        start = end
    return folded


def fold_idle(items: Sequence[Item]) -> Iterator[Item | tuple[Item, ...]]:
    """The items, four or more idle ones in a row (made already, or not needed) as a tuple."""
    start = 0
    while start < len(items):
        end = start
        while end < len(items) and _is_idle(items[end]) and _alike(items[start], items[end]):
            end += 1
        if end - start >= _FEWEST_IDLE:
            yield tuple(items[start:end])
        else:
            end = max(end, start + 1)
            yield from items[start:end]
        start = end


def _is_idle(item: Item) -> bool:
    renamed = item.diff is not None and item.diff.was is not None
    return item.mark in "=·" and item.twin is None and not item.is_root and not renamed


def _alike(first: Item, second: Item) -> bool:
    return first.mark == second.mark


def _signature(group: Group) -> tuple[tuple[str, ...], ...]:
    """What happens in a group, with its numbers left out."""
    return tuple(
        (
            _NUMBER.sub("#", item.id),
            item.job["backend"],
            item.mark,
            _NUMBER.sub("#", item.session or ""),
            _NUMBER.sub("#", because(item)),
            *(_change(change) for change in (item.diff.changes if item.diff else ())),
        )
        for item in group.items
    )


def _change(change: Change) -> str:
    # Seeds differ from round to round by design.
    text = change.text()
    return _NUMBER.sub("#", text) if change.path.endswith("seed") else text
