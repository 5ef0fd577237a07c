"""Best-of-N in a plan: who is leased for a choice, what keys and estimates make of it, and that
nothing of it is in stages that draw one reply."""

from __future__ import annotations

from pathlib import Path

import agentc.diagnostics
from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.plan.job import Job, Plan

EXAMPLE = Path(agentc.diagnostics.__file__).parent / "examples" / "AGC668" / "fixed.yaml"
OTHER = """\
  other:
    backend: scratch
    chat_format: chatml
    corpus: expert
    hidden_size: 128
    heads: 4
    context: 1024
    seed: 1
"""


def plan_of(folder: Path, *changes: tuple[str, str]) -> Plan:
    text = EXAMPLE.read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    spec = folder / "spec.yaml"
    spec.write_text(text, "utf-8")
    unit = compile_spec(spec, {}, load_backends())
    assert unit.plan is not None, [each.message for each in unit.diagnostics]
    return unit.plan


def rollout(plan: Plan) -> Job:
    return plan.by_id()["chosen:rollout"]


def served(job: Job) -> dict[str, str | None]:
    return {lease.draft.role: lease.draft.input for lease in job.leases}


ALONE = (
    (
        "    candidates: 8\n    critic: critic\n    reference: base\n    privileged: test_texts\n",
        "",
    ),
)


def test_a_reference_that_is_the_policy_has_no_server_of_its_own(tmp_path: Path) -> None:
    job = rollout(plan_of(tmp_path))
    assert served(job) == {"policy": "model", "environment": None, "critic": "critic"}
    assert set(job.inputs) == {"model", "critic", "reference", "privileged"}
    assert job.draft.config["candidates"] == 8


def test_another_reference_is_served_beside_the_critic(tmp_path: Path) -> None:
    trained = (
        "    model: base\n    data: best\n",
        "    model: base\n    reference: other\n    data: best\n",
    )
    there = ("  base:\n", OTHER + "  base:\n")
    chosen = (
        "    critic: critic\n    reference: base\n",
        "    critic: critic\n    reference: other\n",
    )
    job = rollout(plan_of(tmp_path, there, trained, chosen))
    roles = {"policy": "model", "critic": "critic", "reference": "reference"}
    assert served(job) == {**roles, "environment": None}


def test_one_candidate_is_the_stage_without_the_setting(tmp_path: Path) -> None:
    plain = rollout(plan_of(tmp_path, *ALONE))
    one = rollout(plan_of(tmp_path, (ALONE[0][0], "    candidates: 1\n")))
    assert (one.key, one.draft.config) == (plain.key, plain.draft.config)
    assert "candidates" not in plain.draft.config
    assert served(plain) == {"policy": "model", "environment": None}


def test_each_number_and_critic_has_a_key_of_its_own(tmp_path: Path) -> None:
    jobs = [
        rollout(plan_of(tmp_path)),
        rollout(plan_of(tmp_path, ("candidates: 8", "candidates: 4"))),
        rollout(plan_of(tmp_path, ("    beta: 0.1\n", "    beta: 0.2\n"))),
        rollout(plan_of(tmp_path, *ALONE)),
    ]
    assert len({job.key for job in jobs}) == 4


def test_an_evaluation_says_what_its_critic_sees(tmp_path: Path) -> None:
    protocol = plan_of(tmp_path).by_id()["chosen"].draft.config["protocol"]
    assert isinstance(protocol, dict)
    assert (protocol["candidates"], protocol["critic_sees"]) == (8, "privileged")
    plain = plan_of(tmp_path, *ALONE).by_id()["chosen"].draft.config["protocol"]
    assert isinstance(plain, dict)
    assert not {"candidates", "critic_sees"} & set(plain)
