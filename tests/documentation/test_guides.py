"""Pages for users: one reader each, short lines, at most 250 lines; every recipe passes `check`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentc.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "reproduce").glob("*.md")])
MOST_LINES = 250
MOST_OF_A_RECIPE = 30
LONG = {"tutorial.md": "shows the whole output of its commands"}
DATED = {"dependencies.md": "says when each was checked", "cost.md": "compares with runs"}
RECIPES = re.findall(
    r"^## (.*?)\n.*?```yaml\n(.*?)```",
    (ROOT / "docs" / "recipes.md").read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)


def test_every_page_is_short() -> None:
    lengths = {page.name: len(page.read_text("utf-8").splitlines()) for page in PAGES}
    assert {name for name, lines in lengths.items() if lines > MOST_LINES} <= set(LONG)


def test_pages_hold_no_measurements() -> None:
    """Dated measurements are in notes/."""
    dated = re.compile(r"\b20\d\d-\d\d-\d\d\b|load average|two-core|two cores that")
    found = {page.name: dated.findall(page.read_text("utf-8")) for page in PAGES}
    assert {name for name, dates in found.items() if dates} <= set(DATED)


@pytest.mark.parametrize(("title", "text"), RECIPES, ids=[title for title, _ in RECIPES])
def test_a_recipe_passes_check(
    title: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(text.splitlines()) <= MOST_OF_A_RECIPE
    spec = tmp_path / "recipe.yaml"
    spec.write_text(text)
    code = main(["check", str(spec)])
    printed = capsys.readouterr()
    warnings = re.findall(r"warning\[(AGC\d+)\]", printed.out + printed.err)
    # An unpinned revision is a warning until the first run.
    assert (code, set(warnings) - {"AGC745"}) == (0, set()), printed


def test_there_is_a_recipe_for_each_method() -> None:
    titles = " ".join(title for title, _ in RECIPES)
    for method in ("SFT", "RFT", "DPO", "ETO", "Agent-R", "SWEET-RL", "ArCHer", "GRPO"):
        assert method in titles
