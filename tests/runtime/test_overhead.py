"""What the wrapper costs over the program itself."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.pace import least
from tiny_plan import TinyPlan


def cpu_seconds(argv: list[str]) -> float:
    """CPU time of a command and its children: unlike wall time it does not depend on what else
    the machine does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.slow
@pytest.mark.alone
def test_wrapper_costs_less_than_a_tenth_of_a_second(
    plan: TinyPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Bytecode is written by the first run, as for a user; without it all is compiled each time.
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    script = tmp_path / "trivial.py"
    script.write_text(
        "import json, sys\n"
        "job = json.load(open(sys.argv[1]))\n"
        "open(job['out'] + '/x', 'w').write('x')\n"
    )
    plan.job("trivial", produces="Other")["program"] = [str(script)]
    assert plan.run("trivial").returncode == 0
    python = min(Path(os.environ["AGENTC_SOFTWARE"]).glob("*/bin/python"))
    raw_job = tmp_path / "job.json"
    raw_job.write_text(json.dumps({"out": str(tmp_path)}))

    def cost() -> float:
        """CPU seconds of the wrapper: the least of five looks, less those of the bare program."""
        wrapped, bare = [], []
        for _ in range(5):
            shutil.rmtree(plan.store / "objects")
            wrapped.append(cpu_seconds(plan.argv("trivial")))
            bare.append(cpu_seconds([str(python), str(script), str(raw_job)]))
        return min(wrapped) - min(bare)

    assert least(cost, 0.1) < 0.1
