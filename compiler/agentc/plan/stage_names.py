"""Which stages or jobs a name from the command line means. Nobody has to type the cell of a matrix
or the number of a round: `rft` is `rft@seed=0` and `rft@seed=1`, `eto.dpo` is that stage of every
round, `eto` all that is in the repeat. Every command that takes a stage asks here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from agentc.diagnostics.suggest import did_you_mean, listed

_NAME = re.compile(r"(?P<path>[^@:]*)(?:@(?P<cell>.*?))?(?::(?P<job>[a-z_]+))?")
"""`eto.1.dpo@seed=0:rollout`: a path, the cell of a matrix, the job of a stage of several."""


FEWEST_CELLS = 2
"""This number of cells of a sweep, or more, are shown as one line."""


def of_all_cells(name: str) -> str:
    """A stage's or job's name without its cell: `eto.1.dpo@*:rollout`; others as they are."""
    match = _NAME.fullmatch(name)
    if match is None or match["cell"] is None:
        return name
    return f"{match['path']}@*" + (f":{match['job']}" if match["job"] else "")


def cell_in(name: str) -> str:
    """The cell of a stage's or job's name: `seed=1`; "" outside of sweeps."""
    match = _NAME.fullmatch(name)
    return "" if match is None else match["cell"] or ""


def folded_names(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Names in their order, with those of a stage in all of its cells as one, `sft@*`; `known` are
    all names that there are. Fewer than FEWEST_CELLS cells are left one by one."""
    given = list(names)
    here, there = Counter(map(of_all_cells, given)), Counter(map(of_all_cells, known))
    whole = {n for n, count in here.items() if FEWEST_CELLS <= count == there[n]}
    return list(dict.fromkeys(n if (n := of_all_cells(each)) in whole else each for each in given))


@dataclass(frozen=True, slots=True)
class _Parts:
    path: tuple[str, ...]
    cell: frozenset[str]
    job: str | None


def matching_names(given: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of `names` (ids of stages or jobs) that `given` means, in their order; often one.

    The narrowest reading that fits anything holds: the very name; that stage in every cell that
    `given` does not exclude; in every round too; everything inside a repeat or round.
    """
    known = tuple(dict.fromkeys(names))
    if given in known:
        return (given,)
    parts = {name: _parts(name) for name in known}
    wanted = _parts(given)
    for fits in (_same_path, _same_without_rounds, _inside):
        found = tuple(n for n in known if fits(wanted, parts[n]) and _admits(wanted, parts[n]))
        if found:
            return found
    return ()


def nearest(given: str, names: Iterable[str]) -> str:
    """The help for a name that means nothing: the nearest names, or what there is. Cells are
    shown only where `given` has one: they need not be typed."""
    shown = names if "@" in given else [without_cell(name) for name in names]
    known = tuple(dict.fromkeys(shown))
    within = _within_repeats(given, known)
    if within:
        return f"did you mean {' or '.join(f'`{name}`' for name in within)}?"
    return did_you_mean(given, known) or f"it has {listed(known)}"


def _within_repeats(given: str, names: Iterable[str]) -> tuple[str, ...]:
    """`eto.dpo` for somebody who wrote `dpo`: stages inside of repeats that are called so."""
    wanted = _parts(given)
    matching = (name for name in names if (parts := _parts(name)).path[-1:] == wanted.path
             and len(parts.path) > 1 and _admits(wanted, parts))  # fmt: skip
    paths = (".".join(part for part in _parts(n).path if not part.isdigit()) for n in matching)
    return tuple(dict.fromkeys(paths))


def without_cell(name: str) -> str:
    """`eto.1.dpo@seed=0:rollout` as `eto.1.dpo:rollout`."""
    parts = _parts(name)
    return ".".join(parts.path) + (f":{parts.job}" if parts.job else "")


def _parts(name: str) -> _Parts:
    match = _NAME.fullmatch(name)
    if match is None:  # no name of a stage
        return _Parts((name,), frozenset(), None)
    cell = frozenset((match["cell"] or "").split(",")) - {""}
    return _Parts(tuple(match["path"].split(".")), cell, match["job"])


def _admits(wanted: _Parts, name: _Parts) -> bool:
    """A part of the cell chooses all cells that have it; a stage's name, all jobs of the stage."""
    return wanted.cell <= name.cell and wanted.job in (None, name.job)


def _same_path(wanted: _Parts, name: _Parts) -> bool:
    return wanted.path == name.path


def _same_without_rounds(wanted: _Parts, name: _Parts) -> bool:
    return wanted.path == tuple(part for part in name.path if not part.isdigit())


def _inside(wanted: _Parts, name: _Parts) -> bool:
    return wanted.path == name.path[: len(wanted.path)]
