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
from agentc.plan.job import Job, Plan
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
    "sweet_rl/backend": {
        **dict.fromkeys(("critic", "critic_without_hidden", "critic_summed"), "pairs of 16384"),
        **dict.fromkeys(("sweet", "sweet_without_hidden", "sweet_with_head"), "pairs of 16384"),
        **dict.fromkeys(("sweet_summed", "mt_dpo"), "pairs of 16384"),
        **dict.fromkeys(("sweet_70b", "mt_dpo_70b"), "pairs of 70 billion"),
        **dict.fromkeys(("alone_70b", "evaluate_70b", "evaluate_rft_70b"), "70 billion"),
        **dict.fromkeys(("evaluate_mt_dpo_70b", "evaluate_sweet_70b"), "70 billion"),
    },
    "sweet_rl/frontend": {
        **dict.fromkeys(("critic", "sweet", "mt_dpo"), "pairs of 16384"),
        **dict.fromkeys(("alone_70b", "evaluate_70b"), "70 billion"),
    },
}
"""Each paper-scale spec: the stages that cards of 40 GB do not hold, and which of SHORT says so."""
WHOLE, SERVED = "a100-40gb has 40.0", "0.9 of a100-40gb is 36.0"
SHORT = {
    "ETO": (43.3, WHOLE, "`micro_batch: 2`: 36.0 GB"),
    "ETO pairs": (43.3, WHOLE, "`micro_batch: 1`: 36.0 GB"),
    "Agent-R": (49.1, WHOLE, "`processes: 32` on 32 GPUs: 38.5 GB; `zero_stage: 3`: 35.9 GB"),
    "pairs of 16384": (47.6, WHOLE, "`offload: true`: 35.5 GB"),
    "pairs of 70 billion": (42.5, WHOLE, "nothing that can be set here makes it fit"),
    "70 billion": (
        36.9,
        SERVED,
        "`max_model_len: 4096`: 35.9 GB; `tensor_parallel: 8` on 8 GPUs: 18.5 GB",
    ),
}
"""What each GPU would have to hold, in GB, what it has, and the first remedies."""
HEAD = {"critic_with_head": "b200-180gb"}
"""Trainings that the papers' cards do not hold, and theirs."""
UNSAID = {"ranked_with_head"}
"""Jobs with a GPU whose backend says nothing of it: how long a head's histories get, nobody knows
beforehand."""
ON_40_GB = {"gpu": "a100-40gb"}


def copied(name: str, folder: Path) -> Path:
    """A copy of the spec, beside the files that it names."""
    place = folder / "specs"
    shutil.copytree((SPECS / f"{name}.yaml").parent, place)
    return place / f"{name.partition('/')[2]}.yaml"


def test_every_spec_of_a_paper_is_held() -> None:
    there = {
        path.relative_to(SPECS).with_suffix("").as_posix()
        for folder in ("eto", "agent_r", "sweet_rl")
        for path in (SPECS / folder).glob("*.yaml")
    }
    # The released README's spec trains and serves the models of sweet_rl/backend, on its cards.
    assert there - {"agent_r/tiny", "sweet_rl/tiny", "sweet_rl/readme"} == set(PAPERS)


SHOWN = ("eto/webshop", "agent_r/table3", "sweet_rl/backend")
"""One of each paper, with which every command is tried: what they show is of the compiled plan,
which other tests compare for all."""


@pytest.mark.parametrize("name", SHOWN)
def test_commands_show_that_cards_of_80_gb_hold_it(
    name: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As shipped, on the cards that the papers name; `plan` shows what a training needs."""
    monkeypatch.setenv("AGENTC_STORE", str(tmp_path))
    spec = str(SPECS / f"{name}.yaml")
    assert main(["check", spec]) == 0
    said = capsys.readouterr()
    assert "AGC66" not in said.out + said.err
    assert main(["plan", spec]) == 0
    shown = capsys.readouterr().out
    assert main(["plan", "--cost", spec]) == 0
    most = "of 180 GB" if name == "sweet_rl/backend" else "of 80.0 GB"
    assert f" {most}" in capsys.readouterr().out
    main(["plan", "--preflight", "--offline", spec])  # whatever else this machine lacks
    told = capsys.readouterr().out
    assert re.search(rf"ok +GPU memory.* {most} \([ab][12]00-", told), told
    assert "its servers take" not in told
    compiled = compile_spec(SPECS / f"{name}.yaml", {}, TABLE).plan
    assert compiled is not None
    trained = next(job for job in placed_jobs(compiled) if job.lease("policy") is None)
    assert trained.memory is not None
    need = f"{trained.memory.device / 1e9:.1f} GB of each GPU (a100-80gb has 80.0 for it)"
    assert need in shown


def placed_jobs(plan: Plan) -> list[Job]:
    return [job for job in plan.jobs if job.memory is not None and job.memory.gpus]


@pytest.mark.parametrize("name", PAPERS)
def test_cards_of_80_gb_hold_all_of_it(name: str) -> None:
    found = compile_spec(SPECS / f"{name}.yaml", {}, TABLE)
    compiled = found.plan
    assert compiled is not None
    assert [each for each in found.diagnostics if each.code.startswith("AGC66")] == []
    placed = placed_jobs(compiled)
    assert placed
    assert {job.id for job in compiled.jobs if job.resources.gpus and job.memory is None} <= UNSAID
    for server in compiled.servers:
        assert server.memory is not None
        assert (server.memory.card, server.memory.room) == ("a100-80gb", 0.85 * 80e9)
        assert 0 < server.memory.device <= server.memory.room
    for job in placed:
        assert job.memory is not None
        assert job.memory.card == HEAD.get(job.id, "a100-80gb"), job.id
        assert 0 < job.memory.device <= job.memory.room, job.id
        if job.id not in HEAD:
            assert job.memory.room == (80e9 if job.lease("policy") is None else 72e9)


@pytest.mark.parametrize(("name", "stages"), PAPERS.items(), ids=PAPERS)
def test_cards_of_40_gb_are_refused_with_the_amount_and_a_remedy(
    name: str, stages: dict[str, str]
) -> None:
    spec = SPECS / f"{name}.yaml"
    errors = [e for e in compile_spec(spec, ON_40_GB, TABLE).diagnostics if e.severity == "error"]
    assert {each.code for each in errors} == {"AGC660"}
    assert {each.message.split("`")[1] for each in errors} == set(stages)
    for each in errors:
        need, has, remedy = SHORT[stages[each.message.split("`")[1]]]
        assert f"needs {need} GB of each GPU, and {has}" in each.message
        assert each.fix is not None
        assert each.fix.startswith(remedy)
        ways = [way.rpartition(": ")[0] for way in each.fix.split("; ")]
        assert len(ways) == len(set(ways)), "each said once"


@pytest.mark.parametrize("name", SHOWN)
def test_every_command_refuses_cards_of_40_gb(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = str(SPECS / f"{name}.yaml")
    for command in (["check"], ["plan"], ["plan", "--cost"], ["plan", "--preflight", "--offline"]):
        assert main([*command, spec, "-p", "gpu=a100-40gb"]) != 0
        assert "AGC660" in capsys.readouterr().err


def test_a_head_s_training_is_refused_on_the_paper_s_cards() -> None:
    """Whole weights on each, and nothing that would make them less."""
    found = compile_spec(SPECS / "sweet_rl/backend.yaml", {"head_gpu": "a100-80gb"}, TABLE)
    (error,) = [each for each in found.diagnostics if each.severity == "error"]
    assert error.message == "`critic_with_head` needs 175 GB of each GPU, and a100-80gb has 80.0"
    assert error.fix is not None
    assert error.fix.startswith("nothing that can be set here makes it fit: a smaller model")


def test_sums_of_sweet_rl_by_the_formulas_of_the_page() -> None:
    """docs/design/memory.md, written out for Llama 3.1: its sizes, tokens, and eight processes."""
    plan = compile_spec(SPECS / "sweet_rl/backend.yaml", {}, TABLE).plan
    assert plan is not None
    held = {job.id: job.memory for job in plan.jobs}
    held |= {server.id: server.memory for server in plan.servers}

    def sums(name: str) -> dict[str, float]:
        memory = held[name]
        assert memory is not None
        return {part: size / 1e9 for part, size in memory.parts.items()}

    v, f, r = 128256, 2, 4
    small = {"h": 4096, "layers": 32, "heads": 32, "k": 1024, "m": 14336}
    large = {"h": 8192, "layers": 80, "heads": 64, "k": 1024, "m": 28672}

    def block(h: int, k: int, m: int, **_: int) -> int:
        return 2 * h * h + 2 * h * k + 3 * h * m + 2 * h

    def trained(tokens: int, h: int, layers: int, heads: int, m: int, **_: int) -> float:
        layer = 2 * h * (4 + r + f) + 4 * f * h + 4 * heads + 4 * f * m
        return tokens * (h * (r + 4 + r + f) + layers * r * h + layer) / 1e9

    def scores(tokens: int, h: int, m: int, **_: int) -> float:
        return max(2 * 4096 * 32768 + 4 * v * h, tokens * (3 * f * m + 2 * r * h)) / 1e9

    n = {}
    for name, size in (("small", small), ("large", large)):
        n[name] = (2 * v * size["h"] + size["layers"] * block(**size) + size["h"]) / 1e9
    assert n == pytest.approx({"small": 8.030261248, "large": 70.553706496})

    pairs = {
        "weights": 4 * n["small"] / 8,
        "Adam": 8 * n["small"] / 8,
        "activations": trained(2 * 16384, **small),
        "logits": scores(2 * 16384, **small),
        "gathered layers": 2 * f * block(**small) / 1e9,
        "embeddings and head": 4 * (2 * v + 1) * small["h"] / 1e9,
    }
    assert sums("critic") == sums("sweet") == sums("mt_dpo") == pytest.approx(pairs)
    rows = {"activations": trained(16384, **small), "logits": scores(16384, **small)}
    rows |= {"gradients": 4 * n["small"] / 8}  # of eight steps of eight rows each
    assert sums("rft") == pytest.approx({**pairs, **rows})
    far = {
        "activations": trained(2 * 4096, **large),
        "logits": scores(2 * 4096, **large),
        "gathered layers": 2 * f * block(**large) / 1e9,
        "embeddings and head": 4 * (2 * v + 1) * large["h"] / 1e9,
    }
    assert sums("sweet_70b") == sums("mt_dpo_70b") == pytest.approx(far)
    for name, devices, replies, size in (
        ("evaluate_8b:rollout", 1, 256, "small"),
        ("evaluate_70b:rollout", 4, 256, "large"),
        ("server/human.llama_70b", 8, 16, "large"),
    ):
        shape = small if size == "small" else large
        wide = 3 * shape["m"]
        passing = 8192 * (2 * (wide + shape["h"]) + 2 * 2 * shape["h"]) / devices
        assert sums(name) == pytest.approx(
            {
                "weights": 2 * n[size] / devices,
                "keys and values": 16384 * 2 * shape["layers"] * shape["k"] * 2 / devices / 1e9,
                "activations": passing / 1e9,
                "logits": 4 * replies * v / 1e9,
            },
            abs=1e-6,
        )


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
