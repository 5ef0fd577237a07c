"""A slip of one character in any key of the quickstart is caught, with the right key offered."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentc.backend_api import BackendTable, load_backends
from agentc.diagnostics import Diagnostic, Sink
from agentc.passes.front import build_module
from agentc.source.load import load_text
from agentc.source.span import Source
from agentc.source.tree import Mapping, Node, Scalar, Sequence

LETTERS = "abcdefghijklmnopqrstuvwxyz_"
NAMED = ("params", "models", "environments", "servers", "prompts", "stages", "carry", "scales")
"""Sections whose keys are names that the spec chooses."""


def language_keys(node: Node, chosen: bool = False) -> Iterator[Scalar]:
    """Keys that belong to the language, in written order."""
    match node:
        case Mapping(entries=entries):
            for entry in entries:
                if not chosen:
                    yield entry.key
                yield from language_keys(entry.value, not chosen and entry.key.text in NAMED)
        case Sequence(items=items):
            for item in items:
                yield from language_keys(item)


def slips(word: str, generator: random.Random) -> list[str]:
    """One of each kind of slip."""
    place = generator.randrange(len(word))
    letter = generator.choice([c for c in LETTERS if c != word[place]])
    found = [
        word[:place] + word[place + 1 :],
        word[:place] + letter + word[place + 1 :],
        word[:place] + letter + word[place:],
    ]
    if len(word) > 1:
        swap = generator.randrange(len(word) - 1)
        found.append(word[:swap] + word[swap + 1] + word[swap] + word[swap + 2 :])
    return [slip for slip in found if slip and slip != word]


def diagnose(text: str, table: BackendTable) -> tuple[Diagnostic, ...]:
    sink = Sink()
    source = Source("quickstart.yaml", text)
    root = load_text(source, sink)
    for scale in (None, "smoke"):
        build_module(source, root, {}, table, sink, scale=scale)
    return sink.sorted()


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


@pytest.fixture(scope="module")
def quickstart(repository: Path) -> str:
    return (repository / "specs" / "quickstart.yaml").read_text()


def test_the_quickstart_itself_is_right(quickstart: str, table: BackendTable) -> None:
    assert diagnose(quickstart, table) == ()


@pytest.mark.parametrize("seed", range(3))
def test_slips_in_keys(seed: int, quickstart: str, table: BackendTable) -> None:
    generator = random.Random(seed)
    root = load_text(Source("quickstart.yaml", quickstart), Sink())
    assert root is not None
    keys = list(language_keys(root))
    assert len(keys) > 80
    lines = quickstart.split("\n")
    tried = 0
    for key in keys:
        if len(key.text) < 2:
            continue  # any other letter is as near to `n` as `n` was
        for slip in slips(key.text, generator):
            line = lines[key.span.line - 1]
            start, end = key.span.column - 1, key.span.end_column - 1
            changed = [*lines]
            changed[key.span.line - 1] = line[:start] + slip + line[end:]
            found = diagnose("\n".join(changed), table)
            here = [
                each
                for each in found
                if each.span is not None
                and (each.span.line, each.span.column) == (key.span.line, key.span.column)
            ]
            assert here, f"{slip} for {key.text} in line {key.span.line} went unnoticed"
            if here[0].code == "AGC104":
                continue  # the slip is another key of the same mapping
            assert here[0].code in ("AGC201", "AGC406", "AGC429", "AGC432")
            assert here[0].fix is not None, f"nothing offered for {slip} ({key.text})"
            assert f"`{key.text}`" in here[0].fix, f"{slip}: {here[0].fix}, not {key.text}"
            tried += 1
    assert tried > 250
