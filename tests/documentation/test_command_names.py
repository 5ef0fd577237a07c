"""Texts name commands that exist: none names a former one."""

from __future__ import annotations

import re
from pathlib import Path

from agentc.cli.other_names import FORMER

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("backends", "benchmarks", "compiler", "docs", "notes", "specs", "templates", "tests")
ENDINGS = frozenset({".diff", ".jinja", ".md", ".py", ".toml", ".yaml", ".yml"})
ELSEWHERE = ("other_names.py", "test_command_names.py", "test_other_commands.py")
"""Where former commands are, as such."""
_FORMER = re.compile(rf"(?<!from )\bagentc ({'|'.join(FORMER)})\b(?!/)")
_PROSE = ("beside where agentc runs", "that agentc runs with")


def test_no_text_names_a_former_command() -> None:
    files = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "Snakefile")]
    for folder in FOLDERS:
        files += [path for path in (ROOT / folder).rglob("*") if path.suffix in ENDINGS]
    texts = {
        path: path.read_text("utf-8", "replace")
        for path in files
        if path.name not in ELSEWHERE and path.is_file()
    }
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path, text in texts.items()
        if _FORMER.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if _FORMER.search(line) and not any(words in line for words in _PROSE)
    ]
    assert found == []
