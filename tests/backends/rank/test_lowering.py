"""How a rank stage becomes jobs, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

import agentc.diagnostics
from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from agentc.plan.job import Job

EXAMPLES = Path(agentc.diagnostics.__file__).parent / "examples"
CHAIN = (EXAMPLES / "AGC678" / "fixed.yaml").read_text("utf-8")
RANKED = "    reference: base\n    privileged: hidden\n"


HEAD = "    parameterisation: value_head\n"


def compiled(
    folder: Path, ranked: str = RANKED, critic: str = ""
) -> tuple[dict[str, Job], list[str]]:
    """Jobs by id, and the messages of errors, of the chain with this part of its rank stage, and
    this one added to its critic."""
    assert RANKED in CHAIN
    spec = folder / "spec.yaml"
    chain = CHAIN.replace("    beta: 0.1\n", f"    beta: 0.1\n{critic}")
    spec.write_text(chain.replace(RANKED, ranked), "utf-8")
    made = compile_spec(spec, {}, load_backends())
    errors = [each.message for each in made.diagnostics if each.severity == "error"]
    return {} if made.plan is None else {job.id: job for job in made.plan.jobs}, errors


def test_each_model_is_served_to_a_job_of_its_own(tmp_path: Path) -> None:
    jobs, errors = compiled(tmp_path)
    assert errors == []
    mine = {name: job for name, job in jobs.items() if job.stage == "ranked"}
    assert list(mine) == ["ranked:reference", "ranked"]
    reference, critic = (job.draft for job in mine.values())
    assert [lease.input for lease in (*reference.leases, *critic.leases)] == ["reference", "critic"]
    assert (reference.produces, critic.produces) == ("CandidateScores", "RewardedTurns")
    # What the reference makes of candidates behind the history has nothing to do with the critic.
    assert set(reference.inputs) == {"candidates", "reference"}
    assert set(critic.inputs) == {"candidates", "critic", "scores", "privileged"}


def test_rankings_by_two_critics_share_the_reference_s_job(tmp_path: Path) -> None:
    sides = ("a", "b")
    keys = []
    for side in sides:
        (tmp_path / side).mkdir()
        other = CHAIN.replace("    beta: 0.1\n", f"    beta: 0.{1 + sides.index(side)}\n")
        (tmp_path / side / "spec.yaml").write_text(other, "utf-8")
        plan = compile_spec(tmp_path / side / "spec.yaml", {}, load_backends()).plan
        assert plan is not None
        keys.append({job.id: job.key for job in plan.jobs})
    one, two = keys
    assert one["ranked:reference"] == two["ranked:reference"]
    assert one["critic"] != two["critic"]
    assert one["ranked"] != two["ranked"]


def test_what_the_sampler_recorded_needs_no_job(tmp_path: Path) -> None:
    jobs, errors = compiled(tmp_path, "    privileged: hidden\n    reference_context: sampler\n")
    assert errors == []
    assert [name for name, job in jobs.items() if job.stage == "ranked"] == ["ranked"]
    assert "scores" not in jobs["ranked"].inputs


def test_the_published_span_is_the_critics_side_only(tmp_path: Path) -> None:
    """With the sampler's own scores that is the released ranking."""
    plain, _ = compiled(tmp_path)
    spans = {name: job.draft.config.get("span") for name, job in plain.items()}
    assert (spans["ranked"], spans["ranked:reference"]) == ("reply", "reply")
    jobs, errors = compiled(tmp_path, RANKED + "    span: published\n")
    assert errors == []
    assert jobs["ranked"].draft.config["span"] == "published"
    assert jobs["ranked:reference"].draft.config == plain["ranked:reference"].draft.config
    assert jobs["ranked:reference"].key == plain["ranked:reference"].key
    assert jobs["ranked"].key != plain["ranked"].key
    sampler = "    privileged: hidden\n    reference_context: sampler\n    span: published\n"
    jobs, errors = compiled(tmp_path, sampler)
    assert errors == []
    assert [name for name, job in jobs.items() if job.stage == "ranked"] == ["ranked"]
    assert jobs["ranked"].draft.config["span"] == "published"


def test_a_reference_behind_hidden_texts_has_the_critic_s_words(tmp_path: Path) -> None:
    jobs, errors = compiled(tmp_path, RANKED + "    reference_context: privileged\n")
    assert errors == []
    assert set(jobs["ranked:reference"].inputs) == {
        "candidates", "reference", "critic", "privileged",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("ranked", "wrong"),
    [
        ("    privileged: hidden\n", "the stage names none"),
        ("    privileged: hidden\n    backend: advantage\n", "the stage names none"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, ranked: str, wrong: str) -> None:
    _, errors = compiled(tmp_path, ranked)
    assert len(errors) == 1
    assert wrong in errors[0]


def test_a_critic_with_a_head_ranks_in_one_job_without_a_server(tmp_path: Path) -> None:
    jobs, errors = compiled(tmp_path, "    privileged: hidden\n", HEAD)
    assert errors == []
    [draft] = [job.draft for job in jobs.values() if job.stage == "ranked"]
    assert draft.backend == "rank.value_head"
    assert draft.leases == ()
    assert set(draft.inputs) == {"candidates", "critic", "privileged"}


@pytest.mark.parametrize("more", ["", "    backend: advantage\n"])
def test_a_critic_with_a_head_has_no_reference(tmp_path: Path, more: str) -> None:
    _, errors = compiled(tmp_path, RANKED + more, HEAD)
    assert errors == [
        "`critic` is a head on a model, whose values are compared with no reference's"
    ]
