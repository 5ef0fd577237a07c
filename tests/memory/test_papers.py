"""The paper-scale specs on the papers' cards of 80 GB, where all of them fit, and on ones of 40 GB,
where their trainings are refused: by how much, and with what they would fit."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.cli import main
from agentc.compilation import compile_spec
from agentc.plan.render import plan_document

TABLE = load_backends()
SPECS = Path(__file__).parents[2] / "specs"
PAPERS = {
    "eto/alfworld": {"sft": "ETO", "eto.1.dpo": "ETO pairs"},
    "eto/baselines_alfworld": {"sft": "ETO", "rft": "ETO"},
    "eto/baselines_sciworld": {"sft": "ETO", "rft": "ETO"},
    "eto/baselines_webshop": {"sft": "ETO", "rft": "ETO"},
    "eto/sciworld": {"sft": "ETO", "eto.1.dpo": "ETO pairs"},
    "eto/table4": {
        "sft": "ETO",
        "trajectory.1.dpo": "ETO pairs",
        "step.1.dpo": "ETO pairs",
        "step_gently.1.dpo": "ETO pairs",
        "mixture.1.dpo": "ETO pairs",
    },
    "eto/textcraft": {"sft": "ETO", "eto.1.dpo": "ETO pairs"},
    "eto/webshop": {"sft": "ETO", "eto.1.dpo": "ETO pairs"},
    "agent_r/direct_revision": {"agent_r.1.sft": "Agent-R"},
    "agent_r/multi_task": {"agent_r.1.sft": "Agent-R"},
    "agent_r/sciworld": {"agent_r.1.sft": "Agent-R"},
    "agent_r/table3": {"agent_r.1.sft": "Agent-R", "direct_revision.1.sft": "Agent-R"},
    "agent_r/table3_sciworld": {
        "agent_r.1.sft": "Agent-R",
        "direct_revision.1.sft": "Agent-R",
    },
    "agent_r/table3_webshop": {
        "agent_r.1.sft": "Agent-R",
        "direct_revision.1.sft": "Agent-R",
    },
    "agent_r/textcraft": {"agent_r.1.sft": "Agent-R"},
    "agent_r/webshop": {"agent_r.1.sft": "Agent-R"},
}
"""Each paper-scale spec: the stages that cards of 40 GB do not hold, and which of SHORT says so."""
SHORT = {
    "ETO": (42.2, "`micro_batch: 2`: 35.0 GB"),
    "ETO pairs": (42.2, "`micro_batch: 1`: 35.0 GB"),
    "Agent-R": (49.1, "`processes: 32` on 32 GPUs: 38.5 GB; `zero_stage: 3`: 35.9 GB"),
}
"""What each GPU would have to hold, in GB, and the first remedies."""
ON_40_GB = {"gpu": "a100-40gb"}


def copied(name: str, folder: Path) -> Path:
    """A copy of the spec, beside the files that it names."""
    place = folder / "specs"
    shutil.copytree((SPECS / f"{name}.yaml").parent, place)
    return place / f"{name.partition('/')[2]}.yaml"


def test_every_spec_of_a_paper_is_held() -> None:
    there = {
        path.relative_to(SPECS).with_suffix("").as_posix()
        for folder in ("eto", "agent_r")
        for path in (SPECS / folder).glob("*.yaml")
    }
    assert there - {"agent_r/tiny"} == set(PAPERS)


@pytest.mark.parametrize("name", PAPERS)
def test_cards_of_80_gb_hold_all_of_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As shipped, on the cards that the papers name; `plan` shows it."""
    spec = str(SPECS / f"{name}.yaml")
    assert main(["check", spec]) == 0
    said = capsys.readouterr()
    assert "AGC66" not in said.out + said.err
    assert main(["plan", spec]) == 0
    shown = capsys.readouterr().out
    assert main(["cost", spec]) == 0
    assert " of 80.0 GB" in capsys.readouterr().out
    main(["preflight", "--offline", spec])  # whatever else this machine lacks
    told = capsys.readouterr().out
    assert re.search(r"ok +GPU memory.* of 80\.0 GB \(a100-80gb\)", told), told
    compiled = compile_spec(SPECS / f"{name}.yaml", {}, TABLE).plan
    assert compiled is not None
    placed = [job for job in compiled.jobs if job.memory is not None and job.memory.gpus]
    assert placed
    for job in placed:
        assert job.memory is not None
        assert job.memory.card == "a100-80gb", job.id
        assert 0 < job.memory.device <= job.memory.room, job.id
        assert job.memory.room == (80e9 if job.lease("policy") is None else 72e9)
    trained = next(job for job in placed if job.lease("policy") is None)
    assert trained.memory is not None
    need = f"{trained.memory.device / 1e9:.1f} GB of each GPU (a100-80gb has 80.0 for it)"
    assert need in shown


@pytest.mark.parametrize(("name", "stages"), PAPERS.items(), ids=PAPERS)
def test_cards_of_40_gb_are_refused_with_the_amount_and_a_remedy(
    name: str, stages: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    spec = SPECS / f"{name}.yaml"
    errors = [e for e in compile_spec(spec, ON_40_GB, TABLE).diagnostics if e.severity == "error"]
    assert {each.code for each in errors} == {"AGC660"}
    assert {each.message.split("`")[1] for each in errors} == set(stages)
    for each in errors:
        need, remedy = SHORT[stages[each.message.split("`")[1]]]
        assert f"needs {need} GB of each GPU, and a100-40gb has 40.0" in each.message
        assert each.fix is not None
        assert each.fix.startswith(remedy)
        ways = [way.rpartition(": ")[0] for way in each.fix.split("; ")]
        assert len(ways) == len(set(ways)), "each said once"
    for command in (["check"], ["plan"], ["cost"], ["preflight", "--offline"]):
        assert main([*command, str(spec), "-p", "gpu=a100-40gb"]) != 0
        assert "AGC660" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["eto/webshop", "agent_r/webshop"])
def test_with_the_remedy_cards_of_40_gb_hold_it(name: str, tmp_path: Path) -> None:
    path = copied(name, tmp_path)
    text = path.read_text()
    sft = 'sft: {use: eto/sft, with: {model: llama, gpus: "{{ gpus }}"}'
    changed = text.replace(f"{sft}}}", f"{sft}, micro_batch: 2}}")
    changed = changed.replace("dpo: {micro_batch: 2}", "dpo: {micro_batch: 1}")
    changed = changed.replace("options: {zero_stage: 2}", "options: {zero_stage: 3}")
    assert changed != text
    path.write_text(changed)
    found = compile_spec(path, ON_40_GB, TABLE)
    assert found.plan is not None, found.diagnostics
    for job in plan_document(found.plan)["jobs"]:  # type: ignore[union-attr]
        memory = job.get("memory")  # type: ignore[union-attr]
        if memory and memory["gpus"]:  # type: ignore[index,call-overload]
            assert memory["device"] <= memory["room"]  # type: ignore[index,operator,call-overload]


def test_without_sharding_eto_is_refused_before_the_first_gpu_second(tmp_path: Path) -> None:
    """Whole float32 weights, gradients and moments on each of four GPUs, for 80 GB each."""
    text = (SPECS / "eto" / "webshop.yaml").read_text()
    sft = '  sft: {use: eto/sft, with: {model: llama, gpus: "{{ gpus }}"}'
    dpo = "dpo: {micro_batch: 2"
    assert text.count(sft) == text.count(f"{dpo}}}") == 1
    text = text.replace(f"{sft}}}", f"{sft}, sharding: none}}")
    text = text.replace(f"{dpo}}}", f"{dpo}, sharding: none}}")
    (tmp_path / "spec.yaml").write_text(text)
    found = compile_spec(tmp_path / "spec.yaml", {}, TABLE).diagnostics
    stages = {each.message.partition(" needs ")[0] for each in found if each.code == "AGC660"}
    assert stages == {"`sft`", "`eto.1.dpo`"}
    for each in found:
        assert "27.0 weights" in each.notes[0]
        assert "53.9 Adam" in each.notes[0]
