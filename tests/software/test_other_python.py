"""An experiment whose software stack is of another Python than agentc's, from lock to report:
the environment is installed from the package index."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentc.runtime.software.interpreter import InterpreterMissingError, find_interpreter
from agentc_backends.software import LIGHT

SPEC = """\
agentc: 1
name: other-python
environments:
  craft: {backend: textcraft}
stages:
  expert: {kind: expert, split: train, environment_at: server}
software: {light: light.txt}
"""


@pytest.mark.slow
def test_jobs_and_servers_run_in_the_python_that_the_lock_demands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demand = "!=%d.%d,>=3.10,<3.14" % sys.version_info[:2]  # noqa: UP031
    try:
        wanted = find_interpreter(demand).release
    except InterpreterMissingError:
        pytest.skip("this machine has one Python only")
    monkeypatch.delenv("AGENTC_SOFTWARE", raising=False)
    (tmp_path / "light.txt").write_text(f"# agentc: python {demand}\n{LIGHT.lock}")
    (tmp_path / "spec.yaml").write_text(SPEC)
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from agentc.cli import main; sys.exit(main())",
         "run", "spec.yaml", "--plain"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    objects = (tmp_path / ".agentc" / "store" / "objects").glob("*/*/artifact.json")
    manifests = {m["id"]: m for m in (json.loads(path.read_text()) for path in objects)}
    assert set(manifests) == {"expert", "report"}
    assert {m["software"]["python"] for m in manifests.values()} == {wanted}
    (lease,) = manifests["expert"]["leases"]
    assert lease["python"] == wanted
    assert "uvicorn" in lease["imported"]
    assert "httpx2" in manifests["expert"]["software"]["imported"]
