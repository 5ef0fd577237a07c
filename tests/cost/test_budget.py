"""`budget:`: what is allowed in it, and how it stops a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentc.cli import main
from agentc.cost.hardware import DEFAULT_GPU, GPUS
from agentc.schema.language import BUDGET_FIELDS, GPU_TYPES

SPEC = """\
agentc: 1
name: demo
environments: {{craft: {{backend: textcraft}}}}
stages:
  expert: {{kind: expert, split: train}}
{budget}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return tmp_path / "demo.yaml"


def write(spec: Path, budget: str) -> str:
    spec.write_text(SPEC.format(budget=budget), encoding="utf-8")
    return str(spec)


def store(spec: Path) -> str:
    return str(spec.parent / "store")


def test_gpu_types_of_the_language_are_those_of_the_table() -> None:
    assert set(GPU_TYPES) == set(GPUS)
    [gpu] = [field for field in BUDGET_FIELDS if field.name == "gpu"]
    assert gpu.default == DEFAULT_GPU


def test_a_run_over_its_budget_starts_nothing(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(spec, "budget: {wall_hours: 0.0001, disk_gb: 50}")
    assert main(["run", path, "--store", store(spec)]) == 1
    shown = capsys.readouterr()
    assert "AGC730" in shown.err
    assert "demo.yaml:6:10" in shown.err
    assert "over the budget of 0.4 s" in shown.err
    assert "expert" in shown.err
    assert shown.err.count("error[") == 1
    assert not (spec.parent / "store" / "runs").exists()
    assert not (spec.parent / "store" / "staging").exists()


def test_the_quantile_decides(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A budget between the middle and the high end of the estimate."""
    for quantile, code in (("p10", 0), ("p50", 0), ("p90", 1)):
        path = write(spec, f"budget: {{wall_hours: 0.0013, quantile: {quantile}}}")
        assert main(["run", path, "--store", store(spec), "--dry-run"]) == code, quantile
    assert "p90 of the estimate" in capsys.readouterr().err


def test_a_dry_run_shows_the_plan_first(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(spec, "budget: {wall_hours: 0.0001}")
    assert main(["run", path, "--store", store(spec), "-n"]) == 1
    assert "expert.planner" in capsys.readouterr().out
    assert main(["run", path, "--store", store(spec), "-n", "--over-budget"]) == 0


def test_the_budget_is_no_part_of_a_key(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for budget in ("", "budget: {wall_hours: 3, quantile: p90, gpu: h100}"):
        out = spec.parent / f"out{len(texts)}"
        assert main(["bundle", "--bare", write(spec, budget), "-o", str(out)]) == 0
        plan = (out / "plan.json").read_text(encoding="utf-8")
        texts.append([line for line in plan.splitlines() if '"sha256"' not in line])
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ("budget: {wall_hours: -1}", "AGC205"),
        ("budget: {wall_hours: many}", "AGC203"),
        ("budget: {wall_hour: 1}", "did you mean `wall_hours`?"),
        ("budget: {wall_hours: 1, quantile: p95}", "AGC204"),
        ("budget: {gpu_hours: 1, gpu: h1000}", "did you mean `h100`?"),
        ("budget: 3", "AGC203"),
        ("budget: {quantile: p90}", "AGC731"),
        ("budget: {gpu_hours: 3}", "AGC732"),
        ('budget: {wall_hours: "{{ hours }}"}', "AGC301"),
    ],
)
def test_what_is_wrong_is_said(
    spec: Path, capsys: pytest.CaptureFixture[str], budget: str, said: str
) -> None:
    path = write(spec, budget)
    code = main(["check", path])
    assert said in capsys.readouterr().err
    assert code == (0 if said in ("AGC731", "AGC732") else 1)


def test_params_reach_the_budget(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    params = "params: {hours: {type: float, default: 0.0001}}"
    path = write(spec, f'{params}\nbudget: {{wall_hours: "{{{{ hours }}}}"}}')
    assert main(["run", path, "--store", store(spec), "-n"]) == 1
    assert main(["run", path, "--store", store(spec), "-n", "-p", "hours=10"]) == 0
    capsys.readouterr()


def test_a_scale_may_have_a_budget_of_its_own(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    smaller = "scales: {smoke: {budget: {wall_hours: 0.0001}}}"
    path = write(spec, f"budget: {{wall_hours: 5}}\n{smaller}")
    assert main(["run", path, "--store", store(spec), "-n"]) == 0
    assert main(["run", path, "--store", store(spec), "-n", "--scale", "smoke"]) == 1
    assert main(["plan", "--cost", path, "--store", store(spec), "--scale", "smoke"]) == 0
    assert "budget of 0.4 s" in capsys.readouterr().out


def test_cost_counts_jobs_where_a_profile_has_a_queue(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(spec, "")
    assert (
        main(["plan", "--cost", str(spec), "--store", store(spec), "--profile", "slurm", "-j", "7"])
        == 0
    )
    shown = capsys.readouterr().out
    assert "in all without the time in the queue, 7 jobs at once (" in shown
    assert "however many jobs: " in shown
    assert main(["plan", "--cost", str(spec), "--store", store(spec), "--profile", "slrm"]) == 2
    assert "did you mean `slurm`?" in capsys.readouterr().err


def test_cost_tells_of_the_budget(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(spec, "budget: {wall_hours: 0.0001, disk_gb: 9}")
    assert main(["plan", "--cost", path, "--store", store(spec), "-j", "2"]) == 0
    shown = capsys.readouterr().out
    assert "budget of 0.4 s: over, at" in shown
    assert "budget of 9.0 GB: within, at" in shown
