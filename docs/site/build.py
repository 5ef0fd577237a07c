"""The documentation as a site: `make site` (docs/README.md, "As a site").

Pages that docs/README.md reaches are laid out as in the repository, so that links between them
stay as they are; its sections become the navigation. Zensical makes HTML of them; any warning of
it, such as a link that leads nowhere, is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
INDEX = "docs/README.md"
NOTES = "notes/"
"""Measurements: for the authors, in the repository only."""
REFERENCE = {"Reference": "docs/reference", "Diagnostic codes": "docs/errors"}
"""Sections of generated pages, which only the site has; of one with an index, only that."""
_LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\(([^()\s]+)\)")
_CODE = re.compile(r"(^```.*?^```[^\n]*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_SETTINGS = """\
site_name: agentc
site_description: A declarative YAML experiment compiler for LLM-agent research
docs_dir: pages
site_dir: html
use_directory_urls: false
strict: true
theme:
  font: false
  features: [content.code.copy, navigation.indexes, navigation.sections, navigation.top,
    navigation.footer, search.highlight, toc.follow]
  palette:
    - {media: "(prefers-color-scheme: light)", scheme: default,
       toggle: {icon: lucide/sun, name: Dark}}
    - {media: "(prefers-color-scheme: dark)", scheme: slate,
       toggle: {icon: lucide/moon, name: Light}}
plugins: [search]
markdown_extensions:
  tables: {}
  sane_lists: {}
  pymdownx.highlight: {}
  pymdownx.superfences: {}
  toc:
    permalink: true
    slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}
"""


class BrokenLinkError(Exception):
    """A page names a file that is not there; `args` are page and target."""


def parts_of(text: str) -> Iterator[tuple[str, bool]]:
    """Pieces of a page in order, with whether each is code that looks like a link; other code may
    stand inside of one."""
    prose = ""
    for number, piece in enumerate(_CODE.split(text)):
        if number % 2 and "](" in piece:
            yield prose, False
            yield piece, True
            prose = ""
        else:
            prose += piece
    yield prose, False


def laid_out(pages: Path, repository: str | None) -> list[str]:
    """Copy each page and picture that is reached from INDEX into `pages`; their paths. A link to a
    file that is no page leads to `repository`, or becomes its own text. Raises BrokenLinkError."""
    waiting, done = [INDEX, "README.md"], []
    while waiting:
        page = waiting.pop()
        if page in done:
            continue
        done.append(page)
        source = ROOT / page
        target = pages / page
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix != ".md":
            shutil.copyfile(source, target)
            continue

        def kept(match: re.Match[str], page: str = page) -> str:
            bang, text, goal = match.groups()
            if "://" in goal or goal.startswith(("#", "mailto:")):
                return match[0]
            name, _, anchor = goal.partition("#")
            place = Path(os.path.normpath((ROOT / page).parent / name))
            if not place.exists() or not place.is_relative_to(ROOT):
                raise BrokenLinkError(page, goal)
            path = place.relative_to(ROOT).as_posix()
            if path.startswith(NOTES):
                return f"[{text}]({repository.rstrip('/')}/{path})" if repository else text
            if place.is_dir() and (place / "README.md").is_file():
                path = f"{path}/README.md"
                goal = f"{name.rstrip('/')}/README.md" + (f"#{anchor}" if anchor else "")
            if bang or path.endswith((".md", ".svg")):
                waiting.append(path)
                return f"{bang}[{text}]({goal})"
            return f"[{text}]({repository.rstrip('/')}/{path})" if repository else text

        whole = "".join(
            piece if code else _LINK.sub(kept, piece)
            for piece, code in parts_of(source.read_text(encoding="utf-8"))
        )
        target.write_text(whole, encoding="utf-8")
    return sorted(done)


def navigation(pages: list[str]) -> list[Any]:
    """The sections of INDEX that list pages, each with them."""
    text = (ROOT / INDEX).read_text(encoding="utf-8")
    found: list[Any] = [{"agentc": "README.md"}, {"Pages by reader": INDEX}]
    seen = {INDEX, "README.md"}
    for section in text.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        listed = []
        for line in re.findall(r"^- (.*)$", body, re.MULTILINE):
            for _, _, goal in _LINK.findall(line):
                path = os.path.normpath(Path(INDEX).parent / goal.partition("#")[0])
                if path in pages and path.endswith(".md") and path not in seen:
                    seen.add(path)
                    listed.append({title_of(path): path})
        if listed:
            found.append({title: listed})
    return found


def title_of(page: str) -> str:
    """The first heading of a page."""
    return heading((ROOT / page).read_text(encoding="utf-8")) or page


def heading(text: str) -> str:
    """The first heading of a text, without marks."""
    match = re.search(r"^# (.*)$", text, re.MULTILINE)
    return re.sub(r"[`*\\]", "", match[1]) if match else ""


def generated(pages: Path) -> dict[str, str]:
    """Write the pages that only the site has below `pages`; each text by path."""
    command = [sys.executable, "-m", "agentc.reference", "--site", str(pages / "docs")]
    subprocess.run(command, check=True, cwd=ROOT)
    files = [file for name in REFERENCE.values() for file in (pages / name).iterdir()]
    return {file.relative_to(pages).as_posix(): file.read_text("utf-8") for file in files}


def reference_navigation(texts: dict[str, str]) -> list[Any]:
    """The sections of generated pages."""
    sections: list[Any] = []
    for title, folder in REFERENCE.items():
        index = f"{folder}/README.md"
        below = sorted(path for path in texts if path.startswith(f"{folder}/"))
        listed = [{heading(texts[path]): path} for path in below]
        sections.append({title: index if index in texts else listed})
    return sections


def main() -> int:
    """Build; the exit code of Zensical, or 1 with a sentence about a broken link."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where to build; the site is in its html/")
    parser.add_argument("--python", required=True, help="an interpreter that has Zensical")
    parser.add_argument("--repository", metavar="URL", help="where files that are no pages are")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "pages").mkdir(parents=True)
    try:
        pages = laid_out(folder / "pages", arguments.repository)
    except BrokenLinkError as broken:
        page, goal = broken.args
        print(f"{page}: the link {goal} leads nowhere", file=sys.stderr)
        return 1
    texts = generated(folder / "pages")
    pages += sorted(texts)
    sections = [*navigation(pages), *reference_navigation(texts)]
    nav = json.dumps(sections, ensure_ascii=False, indent=1)  # JSON is YAML
    (folder / "mkdocs.yml").write_text(f"{_SETTINGS}nav: {nav}\n", encoding="utf-8")
    words = [arguments.python, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(words, cwd=folder, env={**os.environ, "NO_COLOR": "1"}, check=False)
    if done.returncode == 0:
        print(f"{len(pages)} pages: {folder / 'html' / 'index.html'}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
