"""Pages for users: one reader each, short lines, at most 250 lines; every recipe passes `check`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.cli import main
from agentc.compilation import compile_spec
from agentc.plan.render import plan_document

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


@pytest.mark.parametrize(
    ("title", "text"),
    [(title, text) for title, text in RECIPES if "vllm" in text],
    ids=[title for title, text in RECIPES if "vllm" in text],
)
def test_a_recipe_for_a_gpu_requests_one_where_a_model_computes(
    title: str, text: str, tmp_path: Path
) -> None:
    spec = tmp_path / "recipe.yaml"
    spec.write_text(text)
    plan = compile_spec(spec, {}, load_backends(), moving=True).plan
    assert plan is not None
    gpus: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for job in plan_document(plan)["jobs"]:
        if job["kind"] == "model":
            continue
        serves = any(lease["backend"] == "serve.vllm" for lease in job["leases"])
        computes = serves or job["backend"].startswith("trl.")
        gpus[computes][job["id"]] = job["resources"]["gpus"]
    assert set(gpus[True].values()) == {1}, gpus
    assert set(gpus[False].values()) == {0}, gpus


def test_there_is_a_recipe_for_each_method() -> None:
    titles = " ".join(title for title, _ in RECIPES)
    for method in ("SFT", "RFT", "DPO", "ETO", "Agent-R", "SWEET-RL", "ArCHer", "GRPO"):
        assert method in titles
