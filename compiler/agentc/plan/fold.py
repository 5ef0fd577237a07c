"""Folds a long plan into what people read: cells of a sweep and rounds that repeat each other, and
runs of jobs that nothing happens to, become one line each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeAlias, TypeVar

from agentc.plan.diff import Change
from agentc.plan.review import Item, Review, because
from agentc.plan.stage_names import FEWEST_CELLS

_FEWEST_ROUNDS = 4
_FEWEST_IDLE = 4
_NUMBER = re.compile(r"\d+")
_CELL = re.compile(r"@[^:]*")

_Signature: TypeAlias = tuple[tuple[str, ...], ...]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Consecutive jobs of one round in one cell of a sweep (`round` and `cell` are empty outside
    of them). A group with `titles` stands for so many that repeat the one before it."""

    cell: str
    round: str
    items: tuple[Item, ...]
    titles: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """`seed=1: eto, round 2`, or nothing."""
        return ": ".join(part for part in (self.cell, self.round) if part)

    @property
    def is_folded(self) -> bool:
        """Whether it stands for several groups."""
        return len(self.titles) > 0


def groups_of(review: Review) -> list[Group]:
    """The jobs by round, in plan order; those of a sweep by cell, after what all cells share and
    before what reads them."""
    swept = _after_cells(review)
    cells = list(dict.fromkeys(cell_of(item) for item in review.items))
    place = {cell: n for n, cell in enumerate(cells)}

    def rank(item: Item) -> tuple[int, int]:
        cell = cell_of(item)
        return (1, place[cell]) if cell else (2 if item.object in swept else 0, 0)

    groups = []
    for (_, cell, title), items in groupby(
        sorted(review.items, key=rank),
        key=lambda item: (rank(item), cell_of(item), round_title(item)),
    ):
        groups.append(Group(cell=cell, round=title, items=tuple(items)))
    return groups


def cell_of(item: Item) -> str:
    """`seed=1`, or nothing for what does not depend on the sweep."""
    return str(item.job["stage"]).partition("@")[2]


def round_title(item: Item) -> str:
    """`eto, round 2`, or nothing outside of rounds."""
    number = item.job.get("round")
    if number is None:
        return ""
    return f"{str(item.job['stage']).split(f'.{number}.')[0]}, round {number}"


def fold_groups(groups: Sequence[Group]) -> list[Group]:
    """Where the same happens in four or more rounds in a row, or in two or more cells, the
    first stays, and one group stands for the others."""
    cells = [_fold_rounds(list(part)) for _, part in groupby(groups, lambda g: g.cell)]
    folded: list[Group] = []
    for alike in _runs(cells, lambda cell: tuple(map(_signature, cell)) if cell[0].cell else None):
        if len(alike) < FEWEST_CELLS:
            folded += [group for cell in alike for group in cell]
            continue
        rest = alike[1:]
        items = tuple(item for cell in rest for group in cell for item in group.items)
        titles = tuple(cell[0].cell for cell in rest)
        first = alike[0][0]
        folded += [*alike[0], Group(cell=first.cell, round="", items=items, titles=titles)]
    return folded


def _runs(things: Sequence[_T], sign: Callable[[_T], object]) -> Iterator[list[_T]]:
    """Neighbours of one signature together; those without one (None) each by itself."""
    run: list[_T] = []
    last: object = None
    for thing in things:
        now = sign(thing)
        if run and (now is None or now != last):
            yield run
            run = []
        run.append(thing)
        last = now
    if run:
        yield run


def _after_cells(review: Review) -> set[str]:
    """Objects that are made of what depends on a cell."""
    found: set[str] = set()
    for item in review.items:
        read = (name for names in item.job["inputs"].values() for name in names)
        if cell_of(item) or any(name in found for name in read):
            found.add(item.object)
    return found


def _fold_rounds(groups: Sequence[Group]) -> list[Group]:
    folded: list[Group] = []
    for alike in _runs(groups, lambda group: _signature(group) if group.round else None):
        if len(alike) < _FEWEST_ROUNDS:
            folded += alike
            continue
        first, *rest = alike
        items = tuple(item for group in rest for item in group.items)
        titles = tuple(group.title for group in rest)
        folded += [first, Group(cell=first.cell, round=first.round, items=items, titles=titles)]
    return folded


def folded_title(group: Group) -> str:
    """`eto, rounds 3 to 9`, `seed=1`, or `seed=1 to seed=4`, of a folded group."""
    first, last = group.titles[0], group.titles[-1]
    if first == last:
        return first
    if not group.round:
        return f"{first} to {last}"
    name, _, start = first.rpartition(" ")
    return f"{name}s {start} to {last.rpartition(' ')[2]}"


def fold_idle(items: Sequence[Item]) -> Iterator[Item | tuple[Item, ...]]:
    """The items, four or more idle ones in a row (made already, or not needed) as a tuple."""
    for run in _runs(items, _idleness):
        if len(run) >= _FEWEST_IDLE:
            yield tuple(run)
        else:
            yield from run


def _idleness(item: Item) -> tuple[str, bool] | None:
    if item.mark not in "=·" or item.twin is not None or item.is_root:
        return None
    return item.mark, item.diff is not None and item.diff.was is not None


def _signature(group: Group) -> _Signature:
    """What happens in a group, without its numbers and cell."""
    return tuple(
        (
            _plain(item.id),
            str(item.job["backend"]),
            _mark(item),
            _plain(item.session or ""),
            _plain(because(item)),
            _plain(item.diff.was or "") if item.diff else "",
            *(_change(change) for change in (item.diff.changes if item.diff else ())),
        )
        for item in group.items
    )


def _mark(item: Item) -> str:
    """Of the same stage in another cell that makes it, where one does."""
    if item.twin is not None and _plain(item.twin) == _plain(item.id):
        return replace(item, twin=None).mark
    return item.mark


def _plain(text: str) -> str:
    return _NUMBER.sub("#", _CELL.sub("", text))


def _change(change: Change) -> str:
    # Seeds differ from round to round by design.
    text = change.text()
    return _NUMBER.sub("#", text) if change.path.endswith("seed") else text
