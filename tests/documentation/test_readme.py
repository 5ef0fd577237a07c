"""README.md shows what its commands print; pictures and lists of commands are those of the code.

`AGENTC_UPDATE=1` writes the output and the quickstart's graph anew.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentc.cli import COMMANDS, GROUPS

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
GRAPH = ROOT / "docs" / "images" / "quickstart.svg"
UPDATE = os.environ.get("AGENTC_UPDATE") == "1"
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


@pytest.fixture
def environment() -> dict[str, str]:
    """No store and no choice of colours of whoever runs the tests; the command of this Python."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENTC_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    return {**kept, "PATH": path, "NO_COLOR": "1", "COLUMNS": "200"}


def _printed(command: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    # The load of the machine that the tests run on is nobody's business.
    return re.sub(r"; about [^;\n]* at the current load", "", done.stdout)


def _settled(text: str) -> str:
    """Less what differs by the number of cores (estimates) and with each version of a backend."""
    text = re.sub(r"^estimate: .*", "estimate", text, flags=re.MULTILINE)
    text = re.sub(r"about [\d.,]+ \w+", "about T", text)
    text = re.sub(r"\b[0-9a-f]{8}\b", "KEY", text)
    return re.sub(r" +", " ", text)


def test_the_readme_shows_what_its_commands_print(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    readme = README.read_text(encoding="utf-8")
    blocks = _BLOCK.findall(readme)
    assert any("agentc plan" in block for block in blocks)
    for block in blocks:
        commands = re.findall(r"^\$ (.*)$", block, flags=re.MULTILINE)
        real = "".join(f"$ {each}\n{_printed(each, tmp_path, environment)}" for each in commands)
        if UPDATE:
            readme = readme.replace(block, real)
        else:
            assert _settled(real) == _settled(block)
    if UPDATE:
        README.write_text(readme, encoding="utf-8")


def test_the_picture_of_the_quickstart_is_what_agentc_graph_draws(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    shutil.copy(ROOT / "specs" / "quickstart.yaml", tmp_path)
    _printed("agentc graph quickstart.yaml -o drawn.svg", tmp_path, environment)
    drawn = (tmp_path / "drawn.svg").read_text(encoding="utf-8")
    if UPDATE:
        GRAPH.write_text(drawn, encoding="utf-8")
    assert _settled(drawn) == _settled(GRAPH.read_text(encoding="utf-8"))


def test_the_page_of_commands_has_the_groups_of_the_command_line() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    sections = {part.partition("\n")[0].lower(): part for part in page.split("\n## ")}
    for title, names in GROUPS.items():
        rows = re.findall(r"^\| `([a-z-]+)", sections[title], flags=re.MULTILINE)
        assert tuple(dict.fromkeys(rows)) == names


def test_exit_codes_are_those_of_the_command_line(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", page, flags=re.MULTILINE)}
    shown = _printed("agentc --help", tmp_path, environment).split("exit codes:")[1]
    helped = {int(code) for code in re.findall(r"\s{2,}(\d+) ", shown)}
    assert len(helped) > 8
    assert helped <= told
    contract = (ROOT / "docs" / "design" / "contracts.md").read_text(encoding="utf-8")
    section = contract.split("## 8. Exit codes")[1].split("\n`agentc diff`")[0]
    assert told == {int(code) for code in re.findall(r"(?:^|[;:] ?|\n)(\d+) ", section)}


def test_the_readme_names_commands_that_exist() -> None:
    readme = README.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `agentc ([a-z]+)", readme, flags=re.MULTILINE)
    assert len(rows) == 6
    assert set(rows) <= set(COMMANDS)
