"""Each YAML fence of the documentation that is a spec, or a part of one, says what the language
allows. A part may name what stands in a spec around it; its keys and values are checked."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from agentc.backend_api import BackendTable, load_backends
from agentc.diagnostics import Sink, render_text
from agentc.front.read_module import build_module
from agentc.schema.language import TOP_LEVEL
from agentc.source.load import load_bytes
from agentc.source.tree import Mapping

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^( *)```ya?ml[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_SECTIONS = set(TOP_LEVEL) - {"name", "description", "params", "use", "with", "append"}
_AROUND = {
    *("AGC211", "AGC305", "AGC401", "AGC402", "AGC403", "AGC432", "AGC433", "AGC446"),
    "AGC601",  # a backend that the page itself teaches to write
}
"""What the rest of a spec, or an installed distribution, would provide."""
_OTHER = {
    "docs/design/prefixes.md": "a stage called `search`, without `stages:` around it",
    "docs/results.md": "three ways to write one key",
    "docs/security.md": "`...` for a revision",
    "docs/sweeps.md": "a template",
}
"""Pages with a fence that looks like a part of a spec and is none; counted one each."""


def _fences() -> list[tuple[str, int, str]]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    pages += [*sorted((ROOT / "specs").rglob("*.md")), *sorted((ROOT / "backends").rglob("*.md"))]
    found = []
    for page in pages:
        name = page.relative_to(ROOT).as_posix()
        text = page.read_text(encoding="utf-8")
        for fence in _FENCE.finditer(text):
            line = text.count("\n", 0, fence.start()) + 1
            found.append((name, line, textwrap.dedent(fence[2])))
    return found


@pytest.fixture(scope="module")
def table() -> BackendTable:
    return load_backends()


def test_specs_in_pages_say_what_the_language_allows(table: BackendTable) -> None:
    wrong: dict[str, list[str]] = {}
    whole = parts = 0
    for name, line, text in _fences():
        place = f"{name}:{line}"
        _, root = load_bytes(text.encode(), place, Sink())
        keys = {e.key.text for e in root.entries} if isinstance(root, Mapping) else set()
        if not keys & _SECTIONS:
            continue
        head = "".join(
            line for key, line in (("agentc", "agentc: 1\n"), ("name", "name: part\n"))
            if key not in keys
        )  # fmt: skip
        is_whole = {"agentc", "stages"} <= keys
        whole += is_whole
        parts += 1
        sink = Sink()
        source, root = load_bytes(f"{head}{text}".encode(), place, sink)
        build_module(source, root, {}, table, sink)
        errors = [
            each
            for each in sink.sorted()
            if each.severity == "error"
            and each.code not in ({"AGC601"} if is_whole else _AROUND)
            # What a default may give; a role is not among these.
            and not (each.code == "AGC202" and each.fix and "defaults" in each.fix)
        ]
        if errors:
            wrong.setdefault(name, []).append(render_text(errors))
    assert {name: len(texts) for name, texts in wrong.items()} == dict.fromkeys(_OTHER, 1), wrong
    assert whole >= 1
    assert parts >= 35
