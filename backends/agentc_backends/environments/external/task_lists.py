"""Splits of tasks that are numbers: ranges, lists and files of them, disjoint by number; and the
fingerprint that tells whether a number means the same task everywhere.

A spec says `{range: [31, 538]}` (the end is left out), `{ids: [3, 5]}` or `{file: path}`, each
with `except: [other split]`, and `repeated: drop` where a list has a task twice. Files are read
while the spec is compiled, so that a plan holds the numbers themselves and its keys follow them,
never the name of a file. Task ids are `<server>_<number>`, as in the family's published lists."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentc_backends.environments.server.splits import (
    ReadFile,
    SplitError,
    check_disjoint,
    check_names,
    content_of,
    excluded_splits,
    fold_numbers,
    unfold_numbers,
)

Numbers: TypeAlias = tuple[int, ...]

_ITEM = re.compile(r"(?:.*[_-])?([0-9]{1,12})")
_MOST = 1_000_000


def read_splits(
    written: Mapping[str, Any], read_file: ReadFile, tasks: int | None, whose: str = "the server"
) -> dict[str, Numbers]:
    """The numbers of each split, in the order written. `tasks` is how many there are, and `whose`
    says in messages what has them.

    Raises SplitError.
    """
    check_names(written)
    found: dict[str, Numbers] = {}
    for name, value in written.items():
        found[name] = _read(name, value, read_file, tasks, whose)
    for name, value in written.items():
        left_out = {n for other in excluded_splits(name, value, found) for n in found[other]}
        found[name] = tuple(number for number in found[name] if number not in left_out)
        if not found[name]:
            raise SplitError(f"the split `{name}` holds no task")
    check_disjoint(
        found,
        lambda shared: f"{len(shared)} task{'s' * (len(shared) > 1)} ({fold_numbers(shared)[:60]})",
    )
    return found


def names_of(written: Any) -> tuple[str, ...]:
    """The names alone, whatever else is wrong."""
    return tuple(written) if isinstance(written, Mapping) else ()


def expected_numbers(given: Mapping[str, Any]) -> Mapping[str, tuple[float, float]]:
    """`expected_tasks` of a declaration whose identity has the splits as folded numbers."""
    splits = given.get("splits")
    assert isinstance(splits, Mapping)
    return {name: (float(len(unfold_numbers(str(text)))), 1.0) for name, text in splits.items()}


def task_id(server: str, number: int) -> str:
    return f"{server}_{number}"


def task_numbers(server: str, splits: Mapping[str, str]) -> dict[str, int]:
    """Task id to number, in the order of the splits, whose numbers are folded."""
    return {task_id(server, n): n for part in splits.values() for n in unfold_numbers(part)}


def _read(name: str, value: Any, read_file: ReadFile, tasks: int | None, whose: str) -> Numbers:
    match value:
        case {"range": [first, last], **rest} if _is_range(first, last):
            numbers: Iterable[int] = range(first, last)
        case {"ids": list(ids), **rest} if ids and all(_is_number(each) for each in ids):
            numbers = ids
        case {"file": str(path), **rest}:
            numbers = _read_file(name, path, read_file)
        case _:
            raise SplitError(
                f"the split `{name}` is {json.dumps(value)[:80]}; expected "
                "`{range: [first, end]}` (the end is left out), `{ids: [...]}` or `{file: path}`",
            )
    if unknown := [key for key in rest if key not in ("except", "repeated")]:
        raise SplitError(f"the split `{name}` has an unknown key `{unknown[0]}`")
    if rest.get("repeated", "drop") != "drop":
        raise SplitError(f"the split `{name}`: `repeated` can only be `drop`")
    read = tuple(numbers)
    if "repeated" in rest:
        read = tuple(dict.fromkeys(read))
    elif repeated := [number for number, count in Counter(read).items() if count > 1]:
        more = f" and {len(repeated) - 1} others" if repeated[1:] else ""
        raise SplitError(
            f"the split `{name}` holds task {repeated[0]}{more} twice: write `repeated: drop` in "
            "it to take each once",
        )
    if tasks is not None and (beyond := [number for number in read if number >= tasks]):
        raise SplitError(
            f"the split `{name}` holds task {beyond[0]}, but {whose} has 0 to {tasks - 1}"
        )
    return read


def _read_file(name: str, path: str, read_file: ReadFile) -> list[int]:
    content = content_of(name, path, read_file)
    try:
        text = content.decode("utf-8")
        items = json.loads(text) if text.lstrip()[:1] in ("[", "{") else text.split()
    except (ValueError, RecursionError):
        raise SplitError(f"the split `{name}`: {path} is neither JSON nor a list") from None
    numbers = []
    for item in items:  # of an object these are its keys
        if isinstance(item, Mapping):
            item = item.get("item_id")
        match = _ITEM.fullmatch(str(item)) if not isinstance(item, bool) else None
        if match is None:
            raise SplitError(
                f"the split `{name}`: {str(item)[:60]!r} in {path} is no task; expected numbers or "
                "items like textcraft_31",
            )
        numbers.append(int(match[1]))
    return numbers


def _is_range(first: Any, last: Any) -> bool:
    return _is_number(first) and _is_number(last) and first < last <= first + _MOST


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


# Which task a number is depends on file order, on excluded games and on hash seeds of the server's
# machine: published lists are valid only for a server with the same fingerprint, a digest of the
# first texts of some tasks.

DIGITS = 32


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """`value` is None where two resets of one task gave different texts: then no number means
    anything for sure. `unstable` names such a task, with its two texts."""

    value: str | None
    probes: Numbers
    unstable: tuple[int, str, str] | None = None


def probes_of(splits: Mapping[str, Numbers]) -> Numbers:
    """The first, middle and last task of every split, in order of number."""
    chosen = {part[i] for part in splits.values() for i in (0, len(part) // 2, len(part) - 1)}
    return tuple(sorted(chosen))


def fingerprint(first_text: Callable[[int], str], probes: Sequence[int]) -> Fingerprint:
    """Reset the tasks, forwards and then backwards; `first_text` does it with one."""
    first = {task: first_text(task) for task in probes}
    again = {task: first_text(task) for task in reversed(probes)}
    for task in probes:
        if first[task] != again[task]:
            return Fingerprint(None, tuple(probes), (task, first[task], again[task]))
    text = json.dumps([[task, first[task]] for task in probes], ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return Fingerprint(digest[:DIGITS], tuple(probes))


def log_fingerprint(found: Fingerprint) -> None:
    """Write it, or why there is none, to the server's log."""
    if found.unstable is None:
        print(f"fingerprint: {found.value}", file=sys.stderr, flush=True)
        return
    task, one, other = found.unstable
    print(
        f"two resets of task {task} give different first texts, so this server has no "
        f"fingerprint:\n  {one[:200]!r}\n  {other[:200]!r}",
        file=sys.stderr,
    )
