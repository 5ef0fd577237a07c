"""The six specs at their papers' settings: what the released code does is set in the compiled plan,
or stated under `discrepancies`; and what a stage needs is there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.backends.pair.test_contrast import row

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.placement import read_requests, resolve_placement
from agentc.placement.profile import find_profile
from agentc.plan.render import plan_document
from agentc_backends.data.pair.contrast import build_pairs
from agentc_backends.data.pair.trajectories import PairRules

SPECS = Path(__file__).parents[1] / "specs"
ETO = ("eto/alfworld", "eto/sciworld", "eto/webshop")
SWEET = ("sweet_rl/backend", "sweet_rl/frontend", "sweet_rl/tiny")
AGENT_R = ("agent_r/sciworld", "agent_r/textcraft", "agent_r/webshop")

STATED = {
    ETO: (
        "in-context example",
        "instruction and messages to the agent",
        "mean of the SFT loss",
        "last batch of an epoch",
        "the first tokens of a conversation",
    ),
    AGENT_R: (
        "alpha in iteration 3",
        "instruction and messages to the agent",
        "question to the judge",
        "verdicts of the judge",
        "length of the agent's context",
        "rows of more than 8192 tokens",
        "packing and arithmetic of SFT",
        "mean of the SFT loss",
        "last batch of an epoch",
        "replies with an empty action while collecting",
        "order in which thoughts are drawn",
        "newlines in observations",
    ),
    ("sweet_rl/backend", "sweet_rl/frontend"): (
        "place of the hidden text",
        "tokens that are scored",
        "mean of the likelihood",
        "pairs of equal scores or texts",
        "rows that are cut",
        "model that training starts from",
    ),
    ("sweet_rl/frontend",): ("what counts as the answer",),
    ("archer/detective",): ("names of things in the listed actions",),
}


@cache
def plan(name: str) -> Mapping[str, Any]:
    found = compile_spec(SPECS / f"{name}.yaml", {}, load_backends())
    assert found.plan is not None, found.diagnostics
    return plan_document(found.plan)


def jobs(name: str, kind: str) -> list[Mapping[str, Any]]:
    found = [job for job in plan(name)["jobs"] if job["kind"] == kind]
    assert found, f"{name} has no {kind} job"
    return found


def policies(name: str) -> Iterator[Mapping[str, Any]]:
    for job in plan(name)["jobs"]:
        yield from (lease for lease in job["leases"] if lease["role"] == "policy")


@pytest.mark.parametrize(
    ("name", "what"), [(name, what) for names, whats in STATED.items() for name in names
                       for what in whats],
)  # fmt: skip
def test_what_differs_from_the_release_is_stated(name: str, what: str) -> None:
    stated = [entry for entry in plan(name)["experiment"]["discrepancies"] if entry["what"] == what]
    assert len(stated) == 1
    assert all(stated[0][side] for side in ("paper", "code", "chosen"))


_ROW = re.compile(r"\| main figure, ([^|]+), [^,|]+ \| \[(archer/\w+)\.yaml\]")
_METHODS = {"ArCHer": "archer", "CHAI": "chai", "filtered BC": "filtered_bc", "PPO": "ppo"}


def test_the_table_of_specs_names_the_methods_of_each() -> None:
    rows = _ROW.findall((SPECS / "README.md").read_text(encoding="utf-8"))
    assert len(rows) == 4
    for methods, name in rows:
        named = {_METHODS[method] for method in re.split(r", | and ", methods)}
        made = {str(job["backend"]).removesuffix(".online_rl") for job in jobs(name, "online_rl")}
        assert named == made, name


@pytest.mark.parametrize("name", ETO)
def test_eto_acts_by_the_released_rules(name: str) -> None:
    """First `Action: ` to the end of the reply; a format error costs the best score."""
    for job in jobs(name, "rollout"):
        config = job["config"]
        space = "optional" if name == "eto/alfworld" else "required"
        assert (config["action_span"], config["action_space"]) == ("rest", space), job["id"]
        if name == "eto/sciworld":
            assert config["invalid_reward"] == "zero", job["id"]
        prefix = config["prompt"].get("observation_prefix", "Observation: ")
        assert prefix == ("Observation:\n" if name == "eto/webshop" else "Observation: ")
        assert config["on_invalid"] == "observe"


@pytest.mark.parametrize("name", ETO)
def test_eto_divides_its_models_as_the_released_script_does(name: str) -> None:
    """FSDP with full sharding on several GPUs; one process has nothing to divide."""
    for kind in ("sft", "dpo"):
        for job in jobs(name, kind):
            assert job["placement"]["sharding"] == "full", job["id"]
    single = compile_spec(SPECS / f"{name}.yaml", {"gpus": "1"}, load_backends()).diagnostics
    assert {each.code for each in single} == {"AGC660"}, "one GPU does not hold it"
    assert all("sharding none" in each.notes[0] for each in single)


@pytest.mark.parametrize("name", [*ETO, *AGENT_R])
def test_trainings_ask_the_shipped_cluster_profile_for_what_they_load(name: str) -> None:
    """Its default is less than the weights of seven billion in main memory."""
    profile = find_profile("slurm", {})
    assert profile is not None
    settled = resolve_placement(plan(name), read_requests(profile))
    asked = {job["id"]: each.number("mem_mb") for each in settled for job in each.jobs}
    for kind in ("sft", *(("dpo",) if name in ETO else ())):
        for job in jobs(name, kind):
            mem_mb = asked[job["id"]]
            assert mem_mb is not None
            assert mem_mb >= job["memory"]["mem_mb"] > 16000, job["id"]


OTHER_TASKS: Mapping[str, tuple[str, Any]] = {
    "webshop": ("catalogue", None),
    "alfworld": ("games", "invented"),
    "colbench_backend": ("tasks", "invented"),
    "colbench_frontend": ("tasks", "invented"),
    "twenty_questions": ("oracle", "table"),
    "guess_my_city": ("oracle", "table"),
}
"""Settings, and what they are where the tasks are not the paper's."""
VALUED = sorted(
    str(path.relative_to(SPECS).with_suffix(""))
    for path in SPECS.glob("*/*.yaml")
    if "percent: true" in path.read_text("utf-8") or "tolerance:" in path.read_text("utf-8")
)


@pytest.mark.parametrize("name", VALUED)
def test_a_papers_value_is_judged_on_its_tasks_only(name: str) -> None:
    """By default these specs play invented tasks: no verdict, and the reason says why."""
    module = compile_spec(SPECS / f"{name}.yaml", {}, load_backends()).module
    assert module is not None
    for claim in module.claims:
        used = module.stages[claim.stages[0]].uses.get("environment")
        if claim.relation != "value" or used is None:
            continue
        entry = module.environments[used]
        setting, other = OTHER_TASKS.get(entry.backend.removeprefix("env."), ("", None))
        given = entry.fields.get(setting)
        default = "table" if setting == "oracle" else "invented" if setting == "games" else None
        value = default if given is None else given.json
        assert (claim.unmet is not None) == bool(setting and value == other), claim.name


def test_with_published_tasks_the_papers_values_are_judged() -> None:
    given = {"tasks": "train.jsonl", "test_tasks": "test.jsonl"}
    module = compile_spec(SPECS / "sweet_rl" / "backend.yaml", given, load_backends()).module
    assert module is not None
    assert {claim.unmet for claim in module.claims} == {None}


@pytest.mark.parametrize("name", SWEET)
def test_sweet_rl_keeps_rejected_dialogues_whole(name: str) -> None:
    """ETO's cut after five rounds is no rule of SWEET-RL: the answer that failed is in the last
    turn of a long dialogue."""
    made = [job for job in jobs(name, "pair") if job["backend"] == "pair.contrast"]
    assert made
    for job in made:
        config = {key: value for key, value in job["config"].items() if key != "on_empty"}
        rules = PairRules(**{**config, "chosen_at_least": None})
        rows = [row("1", 1.0, 2, who="w"), row("1", 0.0, 10, who="l", attempt=1)]
        [pair], counts = build_pairs([], [rows], rules)
        assert pair["rejected"][-1]["content"] == "l9"
        assert counts.rejected_cut == 0


@pytest.mark.parametrize("name", AGENT_R)
def test_agent_r_acts_by_the_released_rules(name: str) -> None:
    """System message, bare observations, 8192 tokens that forget the oldest turn; the text after
    the last mark, in evaluations the whole reply where there is none."""
    for job in [*jobs(name, "search"), *jobs(name, "rollout")]:
        config = job["config"]
        assert config["prompt"]["system"] == "You are a helpful assistant.", job["id"]
        assert config["prompt"]["observation_prefix"] == "", job["id"]
        assert config["on_overflow"] == "drop_oldest", job["id"]
    for job in jobs(name, "search"):
        config = job["config"]
        assert (config["action_span"], config["no_action"]) == ("last", "last_line")
        assert config["turn_numbers"] == "drop"
    for job in jobs(name, "rollout"):
        config = job["config"]
        assert (config["action_span"], config["no_action"]) == ("after_last", "whole_reply")
    for lease in policies(name):
        assert lease["identity"]["max_model_len"] == 8192
    for job in jobs(name, "sft"):
        assert (job["config"]["mask"]["max_length"], job["config"]["mask"]["truncation"]) == (
            8192, "drop",
        )  # fmt: skip


@pytest.mark.parametrize("name", AGENT_R)
def test_agent_r_revises_by_the_released_rules(name: str) -> None:
    """Above alpha where a reward can be; the released verdicts, anew for each pair."""
    bars = []
    for job in jobs(name, "revise"):
        config = job["config"]
        bars.append((config["bars"]["alpha"], config["bars"]["alpha_is"]))
        judge = config["judge"]
        assert (judge["parser"], judge["once_per"], judge["start"]) == ("published", "pair", "root")
        assert config["dedup_good"] is False
        assert config["observation_prefix"] == ""
    assert bars == [(0.5, "above"), (0.7, "above"), (1.0, "at_least")]


@pytest.mark.parametrize("name", [*ETO, *AGENT_R])
def test_models_are_served_in_the_released_arithmetic_and_as_vllm_sees_fit(name: str) -> None:
    served = list(policies(name))
    assert served
    for lease in served:
        assert lease["identity"]["dtype"] == "float16"
        assert not [word for word in lease["program"] if "chunked-prefill" in word]


@pytest.mark.parametrize("name", AGENT_R)
def test_every_trainer_that_is_offered_compiles_at_every_scale(name: str) -> None:
    path = SPECS / f"{name}.yaml"
    offered = yaml.safe_load(path.read_text("utf-8"))["params"]["trainer"]["choices"]
    assert {"xtuner", "openrlhf"} <= set(offered)
    for trainer in offered:
        found = compile_spec(path, {"trainer": trainer}, load_backends(), every_scale=True)
        errors = [each.message for each in found.diagnostics if each.severity == "error"]
        assert (found.plan is not None, errors) == (True, []), trainer


@pytest.mark.parametrize("name", AGENT_R)
def test_the_pool_of_general_conversations_is_large_enough(name: str) -> None:
    """The largest iteration's share can be drawn, and a shortage would be an error."""
    [pool] = jobs(name, "dataset")
    by_id = {job["id"]: job for job in plan(name)["jobs"]}
    for job in jobs(name, "mix"):
        config = job["config"]
        assert (config["share_of"], config["on_shortage"]) == ("total", "error")
        revise = by_id[job["id"].replace("mixture", "revise")]["config"]
        agent = revise["max_revision"] + revise["max_good"]
        wanted = agent * config["general_share"] / (1 - config["general_share"])
        assert round(wanted) <= pool["config"]["limit"], job["id"]


def test_the_published_tasks_of_webshop_are_the_authors_lists(tmp_path: Path) -> None:
    """`-p data=published` reads the files that `agentc data fetch` leaves: a goal that is
    there twice and one that is tested on are left out of training."""
    products, lists = tmp_path / "webshop-full", tmp_path / "eto-webshop-lists"
    plain = {"full_description": "", "small_description": [], "category": "x", "query": "x",
             "product_category": "x", "pricing": "$5"}  # fmt: skip
    names = [f"A{number}" for number in range(12)]
    goal = {"instruction_attributes": ["x"], "instruction_options": []}
    written = {
        products / "items_shuffle.json": [{"asin": name, "name": name, **plain} for name in names],
        products / "items_ins_v2.json": {
            name: {"attributes": ["x"], "instruction": ""} for name in names
        },
        products / "items_human_ins.json": {
            name: [{"instruction": f"buy {name}", **goal}] for name in names
        },
        lists / "train_indices.json": [3, 4, 4, 5, 6],
        lists / "test_indices.json": [6, 7],
    }
    for file, content in written.items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(content), "utf-8")
    spec = yaml.safe_load((SPECS / "eto/webshop.yaml").read_text("utf-8"))
    del spec["scales"]
    place = tmp_path / "spec.yaml"
    place.write_text(json.dumps(spec), "utf-8")
    given = {"data": "published", "files": "."}
    found = compile_spec(place, given, load_backends())
    assert found.plan is not None, found.diagnostics
    [rollout, *_] = [job for job in plan_document(found.plan)["jobs"] if job["kind"] == "rollout"]
    [shop] = [lease for lease in rollout["leases"] if lease["role"] == "environment"]
    assert shop["identity"]["splits"] == {"train": "3-5", "test": "6-7"}


@pytest.mark.parametrize("name", ETO)
def test_the_published_trajectories_can_be_the_expert(name: str, tmp_path: Path) -> None:
    """In the place of the environment's own, of every spec of the paper's environments."""
    written = yaml.safe_load((SPECS / f"{name}.yaml").read_text(encoding="utf-8"))
    environment = name.removeprefix("eto/")
    record = {
        "id": 500 if environment == "webshop" else "0_0",
        "conversations": [
            {"from": who, "value": text}
            for who, text in (("human", "I"), ("gpt", "OK"), ("human", "t"), ("gpt", "Action: a"))
        ],
    }
    record |= {
        "alfworld": {"game_file": "train/look-Pen-None-Desk-1/trial_T1"},
        "webshop": {"reward": 1.0, "source": "webshop"},
    }.get(environment, {})
    (tmp_path / "given.json").write_text(json.dumps([record]), encoding="utf-8")
    written["stages"]["expert"] = {
        "kind": "dataset",
        "backend": "path",
        "path": "given.json",
        "format": "sharegpt",
        "task_ids": f"eto_{environment}",
        "reward": 1.0,
        "prompt_length": 3,
    }
    del written["scales"]
    spec = tmp_path / "spec.yaml"
    spec.write_text(yaml.safe_dump(written), encoding="utf-8")
    found = compile_spec(spec, {}, load_backends())
    assert [each for each in found.diagnostics if each.severity == "error"] == []
    assert found.plan is not None
    pairs = next(job for job in found.plan.jobs if job.draft.kind == "pair")
    assert pairs.inputs["expert"] == ("expert",)
    acknowledged = written["prompts"]["react"]["acknowledgement"]
    assert acknowledged == "OK", "as in the published conversations"


def test_every_spec_of_a_paper_has_a_smoke_scale_and_says_whose_tasks_it_plays() -> None:
    """Without a choice: worlds whose tasks are the paper's anyway, or whose data is on no hub."""
    without = {"sciworld", "textcraft", "table3", "table3_sciworld", "baselines_sciworld"} | {
        "twenty_questions", "detective", "mistral_subset",
    }  # fmt: skip
    papers = Path(__file__).parents[1] / "docs" / "reproduce"
    pages = "".join(page.read_text("utf-8") for page in papers.glob("*.md"))
    named = set(re.findall(r"specs/(\w+/\w+)\.yaml", pages))
    assert len(named) > 20
    small = {"tiny", "tiny_city", "tiny_detective", "corridor", "rivals"}
    for name in sorted(named):
        spec = yaml.safe_load((Path(__file__).parents[1] / "specs" / f"{name}.yaml").read_text())
        stem = name.partition("/")[2]
        if stem in small:
            continue
        assert "smoke" in spec["scales"], name
        choices = spec["params"].get("data", {}).get("choices")
        assert choices == (None if stem in without else ["invented", "published"]), name
