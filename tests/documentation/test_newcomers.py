"""The pages for newcomers: words of the glossary exist, tables and the picture are the code's.

Neighbour: `test_pages.py`, for what holds of every page.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from agentc.front.read_module import FRONT_PASSES
from agentc.passes import PASSES
from agentc.reference import architecture as levels_module
from agentc.reference.architecture import (
    architecture_page,
    first_sentence,
    layers_of,
    packages_page,
    picture,
    with_section,
)

ROOT = Path(__file__).resolve().parents[2]
_ROW = re.compile(r"^\| (?P<names>[^|]+) \| [^|]+ \| (?P<code>[^|]*)\|$", re.MULTILINE)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def glossary() -> list[tuple[str, str]]:
    """Each name with what stands for it in the code."""
    body = text_of("docs/glossary.md").partition("## Names with two meanings")[0]
    rows = [(row["names"], row["code"].strip(" `")) for row in _ROW.finditer(body)]
    return [(name.strip(), code) for names, code in rows for name in names.split(",")]


def test_each_word_stands_once() -> None:
    names = [name for name, _ in glossary() if name != "name"]
    assert len(names) > 50
    assert [name for name in names if names.count(name) > 1] == []


def test_what_stands_for_a_word_exists() -> None:
    for name, dotted in glossary():
        if dotted in ("", "code"):
            continue
        module, _, last = dotted.rpartition(".")
        found = importlib.import_module(module if last[0].isupper() else dotted)
        assert not last[0].isupper() or hasattr(found, last), f"{name}: {dotted}"


def test_the_page_of_the_architecture_is_current() -> None:
    assert architecture_page(ROOT) == text_of("ARCHITECTURE.md")
    assert packages_page(ROOT) == text_of("docs/design/packages.md")
    assert picture(layers_of(ROOT)) == text_of("docs/images/architecture.svg")


def test_the_picture_has_every_pass_and_package() -> None:
    drawn = picture(layers_of(ROOT))
    passes = [each.__name__ for each in (*FRONT_PASSES, *PASSES)]
    packages = [name for layer in layers_of(ROOT) for name in layer]
    assert [name for name in (*passes, *packages) if not re.search(rf"\b{name}\b", drawn)] == []


def test_a_pass_without_a_level_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels_module, "PASSES", PASSES[:-1])
    with pytest.raises(ValueError, match="finish"):
        levels_module.levels()


def test_a_section_that_is_missing() -> None:
    with pytest.raises(ValueError, match="0 sections `roads`"):
        with_section("<!-- generated: levels -->\n<!-- end -->\n", "roads", ["a"])


def test_the_first_sentence_ends_where_it_ends(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""One of `a.b` and\nc. Another one.\n\nMore."""\n')
    assert first_sentence(module) == "One of `a.b` and c."
