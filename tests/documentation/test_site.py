"""`make site` lays pages out and finds broken links itself; Zensical's part runs in CI."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

from agentc.reference.__main__ import site_pages
from agentc.reference.prose import WIDEST

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_build", ROOT / "docs/site/build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_laid_out_and_the_reference_is_in_the_navigation(
    build: ModuleType, tmp_path: Path
) -> None:
    pages = build.laid_out(tmp_path, None)
    written = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert written <= set(pages)
    assert all((tmp_path / page).is_file() for page in pages)
    sections = {title: value for entry in build.navigation(pages) for title, value in entry.items()}
    assert sections["agentc"] == "README.md"


def test_generated_pages_fit_a_screen_and_their_links_resolve(build: ModuleType) -> None:
    """The generated pages are not committed; the site lays them beside those that are."""
    pages = {f"docs/{name}": text for name, text in site_pages().items()}
    for path, text in pages.items():
        assert [line for line in text.split("\n") if len(line) > WIDEST] == [], path
        prose = "".join(piece for piece, code in build.parts_of(text) if not code)
        for _, _, goal in build._LINK.findall(prose):
            place = os.path.normpath(Path(path).parent / goal.partition("#")[0])
            assert place in pages or (ROOT / place).is_file(), (path, goal)
    reference, codes = build.reference_navigation(pages)
    listed = {path for entry in reference["Reference"] for path in entry.values()}
    assert listed == {
        f"docs/reference/{name}.md" for name in ("backends", "checks", "cost", "spec")
    }
    assert codes == {"Diagnostic codes": "docs/errors/README.md"}


def repository(build: ModuleType, tmp_path: Path, text: str) -> Path:
    root = tmp_path / "repository"
    (root / "docs").mkdir(parents=True)
    (root / "README.md").write_text("# Here\n")
    (root / "program.py").touch()
    (root / "docs" / "README.md").write_text(text)
    build.ROOT = root
    return tmp_path / "pages"


def test_files_that_are_no_pages_become_text_or_lead_to_the_repository(
    build: ModuleType, tmp_path: Path
) -> None:
    text = "[`a()`](../program.py), [up](../README.md#here), `[x](y)`\n```\n[x](y)\n```\n"
    pages = repository(build, tmp_path, text)
    build.laid_out(pages, None)
    page = pages / "docs" / "README.md"
    assert page.read_text() == text.replace("[`a()`](../program.py)", "`a()`")
    build.laid_out(pages, "https://example.org/tree/")
    assert page.read_text().startswith("[`a()`](https://example.org/tree/program.py), [up](")


@pytest.mark.parametrize("goal", ["missing.md", "../../outside.md", "../no/such/folder"])
def test_a_link_that_leads_nowhere_is_an_error(
    build: ModuleType, tmp_path: Path, goal: str
) -> None:
    pages = repository(build, tmp_path, f"See [there]({goal}).\n")
    (tmp_path / "outside.md").touch()
    with pytest.raises(build.BrokenLinkError) as raised:
        build.laid_out(pages, None)
    assert raised.value.args == ("docs/README.md", goal)
