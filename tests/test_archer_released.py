"""ArCHer's released configurations against the specs at its settings, by the tables of
docs/design/archer_released.md: each setting is the released one, or a stated discrepancy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agentc.backend_api import load_backends
from agentc.backend_api.view import find_setting
from agentc.compilation import compile_spec
from agentc.kinds import kind_named
from agentc.plan.render import plan_document

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "design" / "archer_released.md"
SPECS = {
    "archer_20q": ("twenty_questions", "archer"),
    "fbc_20q": ("twenty_questions", "filtered_bc"),
    "archer_city": ("guess_my_city", "archer"),
    "archer_detective": ("detective", "archer"),
    "archer_webshop": ("webshop", "archer"),
    "archer_llm_20q": ("mistral_subset", "archer"),
    "chai_20q": ("twenty_questions", "chai"),
}
"""The stage that each is."""
UNREAD = {"filtered_bc": ("critic.", "discount"), "chai": ("actor.", "warmup")}
"""How settings begin that a method has not: filtered BC no critic, CHAI no policy that learns."""
OF_ANY_STAGE = {"algorithm", "encoder", "environment", "model"}
"""What a stage names besides the fields of its kind."""
IN_JOB = {
    **{f"critic.{name}": f"learner.critic.{name}" for name in ("updates", "batch", "lr")},
    **{f"actor.{name}": f"learner.actor.{name}" for name in ("updates", "batch", "lr")},
    "critic.target_rate": "learner.critic.target_rate",
    "critic.max_grad_norm": "learner.critic.max_grad_norm",
    "actor.max_grad_norm": "learner.actor.max_grad_norm",
    "discount": "learner.critic.discount",
}
"""Where a job's config has a setting, if not under its own name."""


def table(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its head."""
    text = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def names() -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    head = next(line for line in text.splitlines() if line.startswith("| key | default |"))
    return [cell.strip() for cell in head.strip("|").split("|")][2:]


@cache
def released(name: str) -> Mapping[str, str]:
    """The values of a configuration, by the released keys."""
    at = names().index(name) + 2
    return {row[0].strip("`"): row[at] or row[1] for row in table("What they set")}


def mapped(values: Mapping[str, str]) -> dict[str, float]:
    """The settings here that a configuration's numbers become."""
    found: dict[str, float] = {}
    for keys, here, _ in table("What a key is called here"):
        factors = [key.strip(" `") for key in keys.split("*")]
        if not all(each in values for each in factors) or not here.startswith("`"):
            continue
        if factors[0] != "agent_type":
            found[here.strip("`")] = math.prod(float(values[each]) for each in factors)
    return found


@cache
def job(spec: str, stage: str) -> Mapping[str, Any]:
    """What one seed's job is told, and the spec's discrepancies."""
    found = compile_spec(ROOT / "specs" / "archer" / f"{spec}.yaml", {}, load_backends())
    assert found.plan is not None, found.diagnostics
    document = plan_document(found.plan)
    [own] = [each for each in document["jobs"] if each["id"] == f"{stage}@seed=1"]
    stated = {entry["what"] for entry in document["experiment"]["discrepancies"]}
    return {"config": own["config"], "stated": stated, "backend": own["backend"]}


def told(config: Any, setting: str) -> float | None:
    for part in IN_JOB.get(setting, setting).split("."):
        config = config.get(part) if isinstance(config, Mapping) else None
    return None if config is None else float(config)


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_has_the_released_settings_or_says_what_it_has_instead(name: str) -> None:
    spec, stage = SPECS[name]
    of = job(spec, stage)
    settings = {
        each: value
        for each, value in mapped(released(name)).items()
        if not each.startswith(UNREAD.get(stage, ()))
    }
    assert not [each for each in settings if told(of["config"], each) is None]
    apart = {
        (setting, value, told(of["config"], setting))
        for setting, value in settings.items()
        if told(of["config"], setting) != value
    }
    rows = [row for row in table("Where the specs leave them") if row[0] == name]
    assert {(row[2].strip("`"), float(row[3]), float(row[4])) for row in rows} == apart
    assert {row[1] for row in rows} <= {f"{spec}, {stage}"}
    assert {row[5] for row in rows} <= of["stated"]


def test_the_mapping_names_settings_that_exist_and_gives_the_known_numbers() -> None:
    kind = kind_named("online_rl")
    assert kind is not None
    for _, here, _ in table("What a key is called here"):
        for setting in here.split(", "):
            if setting.startswith("`") and setting.endswith("`"):
                name = setting.strip("`")
                assert name in OF_ANY_STAGE or find_setting(kind.fields, name), setting
    llm, twenty = mapped(released("archer_llm_20q")), mapped(released("archer_20q"))
    assert (twenty["actor.lr"], twenty["critic.lr"]) == (1e-6, 2e-5)
    assert (twenty["actor.batch"], llm["actor.batch"]) == (256, 256)
    assert (llm["critic.updates"], llm["actor.updates"], llm["episodes"]) == (20, 1, 32)
    # The first step of the policy comes after so many games.
    assert (twenty["warmup"] + 1) * twenty["episodes"] == 2688
    assert set(SPECS) == set(names())
