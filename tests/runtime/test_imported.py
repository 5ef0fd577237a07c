"""What manifests say of a run: versions really imported, told by the processes, and hardware."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S
from tiny_plan import TinyPlan
from wheels import addressed

from agentc.program.import_report import read_reports
from agentc.runtime.machine import hardware
from agentc.runtime.machine.hardware import MachineProbe, read_gpus
from agentc.runtime.software.interpreter import InterpreterMissingError, find_interpreter
from agentc.runtime.software.job_software import code_directory
from agentc.runtime.store.layout import StoreLayout

TOOL = ["python", "-c", "import subprocess as s; s.run(['python', '-c', 'import tinything'])"]
COMPILER = str(Path(__file__).parents[2] / "compiler")


def reported(folder: Path, code: str) -> dict[str, object]:
    """What a process that runs `code` reports at its end."""
    begin = "from agentc.program.import_report import report_at_exit; report_at_exit()\n"
    subprocess.run(
        [sys.executable, "-c", begin + code],
        env={**os.environ, "PYTHONPATH": COMPILER, "AGENTC_IMPORTED": str(folder)},
        check=True,
        timeout=PATIENCE_S,
    )
    return read_reports(folder)


def test_only_what_was_imported_is_reported(tmp_path: Path) -> None:
    found = reported(tmp_path, "import yaml")
    assert found["python"] == platform.python_version()
    assert found["imported"] == {"PyYAML": version("PyYAML")}


def test_a_late_import_and_a_failure_are_reported(tmp_path: Path) -> None:
    found = reported(tmp_path, "import sys\ndef go():\n  import jinja2\ngo(); sys.exit(0)")
    imported = found["imported"]
    assert isinstance(imported, dict)
    assert set(imported) == {"Jinja2", "MarkupSafe"}


def test_processes_of_one_program_are_joined(tmp_path: Path) -> None:
    reported(tmp_path, "import yaml")
    found = reported(tmp_path, "import markupsafe")
    assert len(list(tmp_path.glob("*.json"))) == 2
    assert found["imported"] == {
        "MarkupSafe": version("MarkupSafe"),
        "PyYAML": version("PyYAML"),
    }


def test_versions_that_differ_stand_side_by_side(tmp_path: Path) -> None:
    for number in ("1.0", "1.1"):
        value = {"python": "3.11.7", "imported": {"torch": number}}
        (tmp_path / f"{number}.json").write_text(json.dumps(value))
    (tmp_path / "cut-off.json").write_text('{"python": "3.')
    assert read_reports(tmp_path) == {"python": "3.11.7", "imported": {"torch": "1.0, 1.1"}}


def test_of_the_processes_of_a_training_the_one_that_took_most_counts(tmp_path: Path) -> None:
    for rank, taken in enumerate((900.5, 1200.0, 30.0)):
        value = {"imported": {}, "gpu": {"max_memory_mb": taken, "max_reserved_mb": taken + 100}}
        (tmp_path / f"{rank}.json").write_text(json.dumps(value))
    (tmp_path / "launcher.json").write_text('{"imported": {}}')
    gpu = read_reports(tmp_path)["gpu"]
    assert gpu == {"max_memory_mb": 1200.0, "max_reserved_mb": 1300.0}


def test_nothing_is_written_outside_of_a_run(tmp_path: Path) -> None:
    variables = {k: v for k, v in os.environ.items() if k != "AGENTC_IMPORTED"}
    code = (
        "from agentc.program.import_report import report, report_at_exit;report_at_exit(); report()"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        env={**variables, "PYTHONPATH": COMPILER},
        cwd=tmp_path,
        check=True,
        timeout=PATIENCE_S,
    )
    assert not list(tmp_path.iterdir())


def test_the_manifest_tells_program_server_and_machine(plan: TinyPlan) -> None:
    plan.job("made", "checkpoint.py", kind="model", produces="Checkpoint")
    plan.job("rows", inputs={"model": ["made"]}, leases=[plan.lease()])
    for name in ("made", "rows"):
        done = plan.run(name)
        assert done.returncode == 0, done.stderr
    manifest = plan.manifest("rows")
    python = platform.python_version()
    assert manifest["software"]["python"] == python
    # The environment is empty, so the program can have imported nothing from it.
    assert manifest["software"]["imported"] == {}
    assert manifest["agentc"]
    (lease,) = manifest["leases"]
    assert (lease["lock"], lease["python"]) == (manifest["software"]["lock"], python)
    hardware = manifest["hardware"]
    assert 1 <= hardware["cpus"] <= hardware["cores"]
    assert hardware["memory_mb"] > 0
    assert not plan.staging("rows").exists()


def test_gpus_are_asked_of_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771, 570.86.15'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = MachineProbe().describe()
    assert found["gpus"] == ["NVIDIA H200"]
    assert found["gpu_memory_mb"] == [143771]
    assert found["gpu_driver"] == "570.86.15"


@pytest.mark.parametrize(
    ("tool", "mode"), [("exec /bin/sleep 600", 0o755), ("exit 9", 0o755), ("", 0o644)]
)
def test_an_nvidia_smi_that_fails_or_hangs_is_none(
    tool: str, mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that waits for a lost GPU answers no more; the job is through all the same."""
    file = tmp_path / "nvidia-smi"
    file.write_text(f"#!/bin/sh\n{tool}\n")
    file.chmod(mode)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(hardware, "_QUERY_PATIENCE_S", 0.2)
    monkeypatch.setattr(hardware, "_CARDS", tmp_path / "none")
    found = MachineProbe().describe()
    assert found["gpus"] == []
    assert found["cpus"] >= 1


@pytest.mark.parametrize("answer", ["", "No devices were found\n", "a, b\n", "Tesla, [N/A], 1\n"])
def test_an_answer_without_gpus_is_none(answer: str) -> None:
    assert read_gpus(answer) == {}


def test_use_of_gpus_is_reported_and_may_fail(tmp_path: Path) -> None:
    """torch's own answers, given by a stand-in; a driver that fails changes nothing."""
    stand_in = """
import sys
from types import SimpleNamespace
torch = SimpleNamespace(version=SimpleNamespace(cuda="12.8"), cuda=SimpleNamespace(
    is_initialized=lambda: True, device_count=lambda: 2,
    max_memory_allocated=lambda index: (index + 1) * 2**30,
    max_memory_reserved=lambda index: (index + 2) * 2**30,
    get_device_name=lambda index: "NVIDIA H200"))
sys.modules["torch"] = torch
"""
    found = reported(tmp_path / "used", stand_in)
    devices = ["NVIDIA H200", "NVIDIA H200"]
    peaks = {"max_memory_mb": 2048.0, "max_reserved_mb": 3072.0}
    assert found["gpu"] == {"cuda": "12.8", "devices": devices, **peaks}
    broken = stand_in + "torch.cuda.device_count = lambda: 1 / 0\n"
    assert "gpu" not in reported(tmp_path / "broken", broken)


def test_a_command_line_that_a_program_starts_by_name_reports_too(
    plan: TinyPlan, tiny_wheel: Path
) -> None:
    """As trainers are run: the job program starts `python` from PATH on a module that knows
    nothing of agentc, which spawns a worker in turn."""
    plan.software("trainer", f"{addressed('tinything', tiny_wheel)}\n")
    plan.job("rows", software="trainer", run=TOOL)
    done = plan.run("rows")
    assert done.returncode == 0, done.stderr
    told = plan.manifest("rows")["software"]
    assert told["imported"] == {"tinything": "1.2"}
    assert told["python"] == platform.python_version()


@pytest.mark.parametrize("minor", [8, pytest.param(13, marks=pytest.mark.slow)])
def test_a_program_of_another_python_runs_and_reports(
    plan: TinyPlan, tiny_wheel: Path, minor: int
) -> None:
    try:
        find_interpreter(f"3.{minor}")
    except InterpreterMissingError:
        pytest.skip(f"this machine has no Python 3.{minor}")
    lock = f"# agentc: python 3.{minor}\n{addressed('tinything', tiny_wheel)}\n"
    plan.software("old", lock)
    plan.job("rows", software="old", run=TOOL)
    done = plan.run("rows")
    assert done.returncode == 0, done.stderr
    told = plan.manifest("rows")["software"]
    assert told["imported"] == {"tinything": "1.2"}
    assert told["python"].startswith(f"3.{minor}.")


def test_the_machines_own_sitecustomize_still_runs(plan: TinyPlan, tmp_path: Path) -> None:
    code = code_directory(StoreLayout(plan.store), ["agentc"])
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("print('own', __name__)\n")
    done = subprocess.run(
        [sys.executable, "-c", "print('program')"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{code}:{tmp_path / 'own'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "own sitecustomize\nprogram\n"
