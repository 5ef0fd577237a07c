"""A worker that ends right after its last collective ends with its own status.

Without `end_worker` the interpreter is taken down while gloo's thread still holds that collective's
tensors: of launches like this one, two in three had a worker that aborted.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

PROGRAM = """
import atexit
import sys
from pathlib import Path
import torch
import torch.distributed as dist
from agentc_backends.trainers.common.processes import end_worker

dist.init_process_group("gloo")
atexit.register((Path(sys.argv[1]) / str(dist.get_rank())).touch)
for _ in range(3):
    dist.all_reduce(torch.ones(20))
end_worker(0)
"""


def test_worker_that_held_a_collective_ends_with_its_status(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = tmp_path / "done"
    done.mkdir()
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    ended = subprocess.run(
        [*launcher, "--nproc-per-node", "4", str(program), str(done)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert sorted(one.name for one in done.iterdir()) == ["0", "1", "2", "3"], "exit handlers"
