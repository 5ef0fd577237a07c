"""specs/gpu.yaml without a GPU: its smoke scale comes to its report by both trainers, and what is
to be read of a run on a GPU is read of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.gpu import main
from smoke import agentc, require_software

pytestmark = [pytest.mark.slow, pytest.mark.long]


def test_the_smoke_scale(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require_software("trl.sft")
    require_software("openrlhf.sft")
    store = tmp_path / "store"
    words = (repository / "specs" / "gpu.yaml", "--scale", "smoke", "--store", store)
    agentc("run", *words, "--plain")
    assert main(["--scale", "smoke", "--store", str(store)]) == 0
    machine, _, *table = capsys.readouterr().out.splitlines()
    assert machine.startswith("no GPU; ")
    assert all(f" {package} " in machine for package in ("torch", "trl", "openrlhf"))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]
    backends = {row[1] for row in rows}
    assert backends == {"trl.sft", "trl.dpo", "openrlhf.sft", "openrlhf.dpo", "serve.transformers"}
    for row in rows:
        assert float(row[3]) > 0, f"tokens per second of {row[0]}"
        # Of a server that several jobs share its peak is known at its end alone.
        shared = row[1].startswith("serve") and not row[4]
        assert shared or row[4] == "main memory"
        assert shared or 0 < float(row[5]) < float(row[6]), "what is asked for is enough"
