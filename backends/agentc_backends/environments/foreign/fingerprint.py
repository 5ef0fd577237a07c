"""Tells whether task numbers mean the same here as where a split was made.

Tasks of others' servers are numbers, and which task a number is depends on file order, on excluded
games and on hash seeds of the server's machine: published lists are only good for a server with the
same fingerprint. It is a digest of the first texts of some tasks.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agentc_backends.environments.foreign.task_lists import Numbers

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


def tell_fingerprint(found: Fingerprint) -> None:
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
