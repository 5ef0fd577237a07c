"""A slip of one character in any key of any shipped spec is caught at its place, with the right key
offered and nothing reported that follows from it: each class of slip (a letter left out, another,
one too many, two swapped) at every position of every key.

Keys of different mappings at one depth are misspelt together, since a front end that reads a spec
takes 20 ms; what is not caught so is tried alone before it counts as a failure. Before a release;
`test_one_message.py` does the same with the keys of every kind in each run.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import BackendTable, load_backends
from agentc.diagnostics import Diagnostic, Sink
from agentc.diagnostics.diagnostic import Source
from agentc.front.read_module import build_module
from agentc.schema import language
from agentc.source.load import load_text
from agentc.source.tree import Mapping, Node, Scalar, Sequence

ROOT = Path(__file__).resolve().parents[2]
SPECS = sorted((ROOT / "specs").rglob("*.yaml"))
LETTERS = "abcdefghijklmnopqrstuvwxyz_"
NAMED = (
    "params",
    "models",
    "environments",
    "servers",
    "prompts",
    "stages",
    "carry",
    "claims",
    "scales",
    "matrix",
    "over",
    "inputs",
)
"""Sections whose keys are names that the spec chooses; `inputs` are a script's."""
UNKNOWN = {"AGC201", "AGC406", "AGC429", "AGC432", "AGC450"}
"""An unknown key; a default that no stage takes; what a template or a scale does not know; what a
claim cannot need."""


PLACEMENT = {field.name for field in language.PLACEMENT_FIELDS}
"""Of `gpus` a slip makes `gpu`, which is a key as well: what stands there is then no card
(AGC661, `valid_card` of tests/checks)."""

SECRET = {"secret"}
"""A mapping of this key alone is a reference. With another one it may be a secret itself: the whole
value is refused and shown to nobody (AGC322)."""


@dataclass(frozen=True)
class Slip:
    """A misspelt key, and its sort of place: a slip at an equal place has an equal answer."""

    key: Scalar
    written: str
    siblings: frozenset[str]
    place: tuple[Any, ...]


def mappings(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping]]:
    """Mappings whose keys belong to the language, with the path to each (names as `*`). What an
    environment's `splits` hold, at a scale too, is its backend's, which reads it when it lowers."""
    if "environments" in path and path[-1] == "splits":
        return
    match node:
        case Mapping(entries=entries):
            chosen = bool(path) and path[-1] in NAMED
            if not chosen:
                yield path, node
            for entry in entries:
                yield from mappings(entry.value, (*path, "*" if chosen else entry.key.text))
        case Sequence(items=items):
            for item in items:
                yield from mappings(item, (*path, "-"))


def slips_of(word: str, generator: random.Random, all_classes: bool) -> Iterator[str]:
    """Misspellings at every position: one of each class, or the classes in turn."""
    for place in range(len(word)):
        letter = generator.choice([char for char in LETTERS if char != word[place]])
        classes = (
            word[:place] + word[place + 1 :],
            word[:place] + letter + word[place + 1 :],
            word[:place] + letter + word[place:],
            word[:place] + word[place : place + 2][::-1] + word[place + 2 :],
        )
        chosen = classes if all_classes else (classes[place % 4],)
        yield from (slip for slip in dict.fromkeys(chosen) if slip and slip != word)


def slips(spec: str, all_classes: bool) -> dict[int, list[list[Slip]]]:
    """For each depth the slips of each mapping."""
    root = load_text(Source("spec", spec), Sink())
    assert root is not None
    found: dict[int, list[list[Slip]]] = defaultdict(list)
    for path, mapping in mappings(root):
        siblings = frozenset(entry.key.text for entry in mapping.entries)
        words = {e.key.text: e.value.text for e in mapping.entries if isinstance(e.value, Scalar)}
        # What is allowed depends on the kind of a stage, and on backend or template of an entry.
        place = (path, siblings, *(words.get(key) for key in ("kind", "backend", "use")))
        found[len(path)].append(
            [
                Slip(entry.key, slip, siblings, (*place, entry.key.text))
                for entry in mapping.entries
                for slip in slips_of(
                    entry.key.text, random.Random(f"{path}{entry.key.text}"), all_classes
                )
                if slip not in siblings
                and not (path[-1:] == ("placement",) and slip in PLACEMENT)
                and siblings != SECRET
            ]
        )
    return found


def diagnose(path: Path, text: str, table: BackendTable, scaled: bool) -> tuple[Diagnostic, ...]:
    """What the front end says of a text in the place of a spec; of its scales too, if `scaled`."""
    sink = Sink()
    source = Source("spec", text)
    root = load_text(source, sink)
    section = root.find("scales") if isinstance(root, Mapping) else None
    scales: list[str | None] = [None]
    if scaled and section is not None and isinstance(section.value, Mapping):
        scales += [entry.key.text for entry in section.value.entries]
    for scale in scales:
        build_module(source, root, {}, table, sink, directory=path.parent, scale=scale)
    return sink.sorted()


def complaint(path: Path, made: list[Slip], table: BackendTable) -> dict[Slip, str]:
    """What is wrong with the answers to slips that are made together; {} when all is well."""
    lines = path.read_text().split("\n")
    columns: dict[Slip, tuple[int, int]] = {}
    shift: dict[int, int] = defaultdict(int)
    for slip in sorted(made, key=lambda slip: (slip.key.span.line, slip.key.span.column)):
        span = slip.key.span
        start, end = (column - 1 + shift[span.line] for column in (span.column, span.end_column))
        line = lines[span.line - 1]
        lines[span.line - 1] = line[:start] + slip.written + line[end:]
        shift[span.line] += len(slip.written) - (end - start)
        columns[slip] = (span.line, start + 1)
    scaled = any("scales" in slip.place[0] for slip in made)
    found = diagnose(path, "\n".join(lines), table, scaled)
    wrong: dict[Slip, str] = {}
    for slip, at in columns.items():
        here = [d for d in found if d.span is not None and (d.span.line, d.span.column) == at]
        if not here:
            wrong[slip] = "went unnoticed"
        elif here[0].code not in UNKNOWN:
            wrong[slip] = f"got {here[0].code}"
        elif len(slip.key.text) == 1:
            # Any other letter is as near to `n` as `n` was; then all keys are shown.
            if "`n`" not in f"{here[0].expected} {here[0].fix}":
                wrong[slip] = f"got {here[0].expected}"
        elif f"`{slip.key.text}`" not in (here[0].fix or ""):
            wrong[slip] = f"got {here[0].fix}"
        elif len(here) > 1:
            wrong[slip] = f"got {here[1].code}, too"
    places = set(columns.values())
    follows = [d for d in found if d.span is None or (d.span.line, d.span.column) not in places]
    if follows:
        for slip in made:
            wrong.setdefault(slip, f"also led to {follows[0].code}: {follows[0].message}")
    return wrong


def check(path: Path, table: BackendTable, all_classes: bool, known: set[object]) -> int:
    """Try every slip whose sort of place is not `known`; returns how many were tried."""
    tried = 0
    for tracks in slips(path.read_text(), all_classes).values():
        fresh = []
        for track in tracks:
            fresh.append([slip for slip in track if slip.place not in known])
            known |= {slip.place for slip in fresh[-1]} if not all_classes else set()
        for together in zip_longest(*fresh):
            made = [slip for slip in together if slip is not None]
            tried += len(made)
            for slip in complaint(path, made, table):
                alone = complaint(path, [slip], table)
                assert alone == {}, (
                    f"`{slip.written}` for `{slip.key.text}` in line {slip.key.span.line} "
                    f"{alone[slip]}"
                )
    return tried


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


@pytest.mark.slow
@pytest.mark.long
def test_slips_in_the_keys_of_every_spec(table: BackendTable) -> None:
    """Every position of every key, the classes of slips in turn; equal places once."""
    known: set[object] = set()
    tried = {spec.name: check(spec, table, False, known) for spec in SPECS}
    assert len(tried) >= 5
    assert sum(tried.values()) > 1000


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("spec", SPECS, ids=[spec.name for spec in SPECS])
def test_every_slip_in_every_key(spec: Path, table: BackendTable) -> None:
    """Every class at every position of every key, each spec for itself."""
    found = diagnose(spec, spec.read_text(), table, scaled=True)
    assert [each for each in found if each.severity == "error"] == []
    assert check(spec, table, True, set()) > 400
