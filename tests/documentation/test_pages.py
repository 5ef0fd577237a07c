"""Pages are readable as text, lead to each other, and name files and modules that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from agentc.reference.__main__ import site_pages
from agentc.reference.codes import CODES
from agentc.reference.prose import WIDEST, folded, folded_output

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "backends", "specs", "fuzz", "tests/mutants")
PAGES = sorted(
    [
        ROOT / f"{name}.md"
        for name in ("README", "CHANGELOG", "ARCHITECTURE", "CONTRIBUTING", "SECURITY")
    ]
    + [page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md")]
)
SOURCES = ("compiler", "backends", "tests", "benchmarks", "fuzz")
"""Folders of whose files a page may give the end of the path: `trl/backend.py`."""

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATH = re.compile(
    r"(?<![\w/.`{-])`?((?:docs|compiler|backends|tests|benchmarks|specs|templates|fuzz|\.\.)"
    r"/[\w./-]*\w)"
)
_FILE = re.compile(r"`([\w./-]+\.(?:py|md|yaml|lock|toml|j2|svg))`")
_MODULE = re.compile(r"\b(agentc(?:_backends)?(?:\.\w+)+)")
_STARTED = re.compile(r"python -m ((?:agentc|agentc_backends|benchmarks|tests|fuzz)(?:\.\w+)*)")

# Files of a reader's own, of other people's checkouts, of objects in the store; modules of before.
ELSEWHERE = frozenset(
    {
        "./mine.yaml",
        ".helix/languages.toml",
        "agentc.backends",  # the groups of entry points
        "agentc.searchers",
        "agentc.trackers",
        "construct_preference.py",
        "logs/xtuner_config.py",
        "mcts_collection.py",
        "path_collection.py",
        "profiles/default/config.yaml",
        "specs/eto.lock",
        "specs/eto.yaml",
    }
)

EXAMPLES_OF_CODES = ROOT / "compiler" / "agentc" / "diagnostics" / "examples"
EXAMPLES = ("acme_agents/", "figure.py", "parcels_world/", "sorting_world/")
"""What pages write as examples; tests/third_party and test_tutorial.py use them."""


@cache
def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def _prose(page: Path) -> str:
    return re.sub(r"```.*?```", "", _text(page), flags=re.DOTALL)


@cache
def _sources() -> str:
    """Each path below SOURCES, between line breaks."""
    found = (file for each in SOURCES for file in (ROOT / each).rglob("*.*"))
    return "".join(f"\n/{file.relative_to(ROOT).as_posix()}\n" for file in found)


def _anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def _named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _exists(name: str, page: Path) -> bool:
    if name in ELSEWHERE or name.startswith(EXAMPLES):
        return True
    ends = f"/{name}\n" in _sources()
    return ends or any((base / name).exists() for base in (ROOT, page.parent))


def _module_exists(name: str, roots: dict[str, str]) -> bool:
    """Whether a dotted name is a module, or a name that its longest module mentions."""
    first, *parts = name.split(".")
    at = ROOT / roots.get(first, first)
    while parts and at.is_dir():
        below = at / parts[0]
        at = below if below.is_dir() else below.with_suffix(".py")
        if not at.exists():
            at = at.parent
            break
        del parts[0]
    source = at / "__init__.py" if at.is_dir() else at
    return not parts or (
        source.is_file() and re.search(rf"\b{parts[0]}\b", _text(source)) is not None
    )


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_a_page_fits_a_screen_and_names_only_what_exists(page: Path) -> None:
    wide = [
        f"{number}: {len(line)} columns"
        for number, line in enumerate(_text(page).split("\n"), start=1)
        if len(line) > WIDEST
    ]
    broken = []
    for target in _LINK.findall(_prose(page)):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        goal = page.parent / name if name else page
        if not goal.exists() or (anchor and anchor not in _anchors(goal)):
            broken.append(target)
    assert (wide, broken, [*_missing(page)]) == ([], [], [])


def _missing(page: Path) -> Iterator[str]:
    prose = _prose(page)
    for name in _PATH.findall(prose):
        if not _exists(name, page):
            yield name
    for name in _FILE.findall(prose):
        # Without a folder, only programs are surely ours: `config.yaml` may be anybody's.
        if ("/" in name or name.endswith(".py")) and not _exists(name, page):
            yield name
    packages = {"agentc": "compiler/agentc", "agentc_backends": "backends/agentc_backends"}
    for name in (*_MODULE.findall(prose), *_STARTED.findall(_text(page))):
        if name not in ELSEWHERE and not _module_exists(name, packages):
            yield name


def test_what_is_elsewhere_is_still_named() -> None:
    told = "".join(_prose(page) for page in PAGES)
    assert [name for name in sorted(ELSEWHERE) if name not in told] == []


def test_the_index_leads_to_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    links = _LINK.findall(_text(index))
    linked = {index, *((index.parent / name.split("#")[0]).resolve() for name in links)}
    assert [_named(page) for page in (ROOT / "docs").rglob("*.md") if page not in linked] == []
    assert "docs/README.md" in _text(ROOT / "README.md")


def test_every_code_has_a_page_that_a_screen_can_show() -> None:
    pages = {
        name.removeprefix("errors/"): text
        for name, text in site_pages().items()
        if name.startswith("errors/")
    }
    assert set(pages) == {"README.md", *(f"{code.code}.md" for code in CODES)}
    for name, text in pages.items():
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        assert set(_LINK.findall(prose)) <= set(pages), name
        # Whatever an example needs besides the spec is shown, for those who try it.
        for path in (EXAMPLES_OF_CODES / name.removesuffix(".md")).rglob("*.yaml"):
            assert path.read_bytes().decode("utf-8", "replace").rstrip() in text, path


def test_folded_prose_stays_prose() -> None:
    words = ["word"] * 23 + ["-", "1.", "#", "`a", "b`"]
    lines = folded(" ".join(words), indent="  ", first="- ")
    assert len(lines) == 2
    assert " ".join(lines).split() == ["-", *words]
    assert lines[1].startswith("  ")
    assert lines[1].split()[0] == "`a"


def test_folded_output_keeps_all_words_and_short_lines() -> None:
    text = "short\n  expected: " + "`a`, " * 60 + "end\n\nlast"
    lines = folded_output(text).split("\n")
    assert max(map(len, lines)) <= WIDEST
    assert lines[0] == "short"
    assert lines[-2:] == ["", "last"]
    assert lines[2].startswith("      `a`")
    assert " ".join(lines).split() == text.split()
