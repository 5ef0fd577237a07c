"""The pages show the estimates that `agentc plan` prints on an idle machine of two cores."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.cost import Estimate, Summary, estimate_plan, summarise
from agentc.cost.place import Place
from agentc.cost.render import short_cost, summary_lines
from agentc.plan.render import plan_document
from agentc.text import format_duration

ROOT = Path(__file__).resolve().parents[2]
_JOB = re.compile(r"^ *\+ +(\S+) +\S+ +[0-9a-f]{8} +to run +(about [\d.]+ \w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Estimated:
    """What a plan on an empty store prints."""

    jobs: dict[str, Estimate]
    whole: Summary


@cache
def estimated(spec: Path) -> Estimated:
    compiled = compile_spec(spec, {}, load_backends())
    assert compiled.plan is not None, compiled.diagnostics
    document = plan_document(compiled.plan)
    jobs = estimate_plan(document, None, table=load_backends())
    return Estimated(jobs, summarise(document, jobs, Place(cores=2)))


@pytest.mark.parametrize("page", ["README.md", "docs/cost.md"])
def test_the_estimate_of_the_quickstart(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    first, second = summary_lines(estimated(ROOT / "specs" / "quickstart.yaml").whole)
    found = re.findall(r"^estimate: (.*?)(?:; about .* at the current load)?\n  (.*)$", text,
                       flags=re.MULTILINE)  # fmt: skip
    assert found == [(first, second)]


def test_the_readme_shows_what_init_says_of_the_quickstart() -> None:
    whole = estimated(ROOT / "specs" / "quickstart.yaml").whole
    said = f"no GPU, no weights: about {format_duration(whole.wall.median)} on an idle machine\n"
    assert said in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_shows_the_time_of_each_job() -> None:
    jobs = estimated(ROOT / "specs" / "quickstart.yaml").jobs
    shown = dict(_JOB.findall((ROOT / "README.md").read_text(encoding="utf-8")))
    assert shown == {name: short_cost(estimate) for name, estimate in jobs.items()}
