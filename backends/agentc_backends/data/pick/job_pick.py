"""Job: take a policy out of a run. `python -m agentc_backends.data.pick.job_pick JOB.json`.

Files of a published run never change, so they get a second name where the disk allows it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from agentc.kinds.reinforcement import CheckpointSettings
from agentc.program.artifact_files import CURVE_FILE, EPISODES_FILE, EVALUATIONS_FILE, RUN_FILE
from agentc.program.job import load_job

_OF_THE_RUN = (RUN_FILE, CURVE_FILE, EPISODES_FILE, EVALUATIONS_FILE)


def main() -> int:
    """Exit 0 with the policy written, 1 where the run did not keep it."""
    job = load_job()
    run = job.input("run")
    at = job.config.read_as(CheckpointSettings).at
    job.config.assert_all_read()
    told = json.loads((run / RUN_FILE).read_text(encoding="utf-8"))
    folder = run
    if at is not None and at != told["iterations"]:
        folder = run / "checkpoints" / str(at)
        if not folder.is_dir():
            kept = ", ".join(map(str, [*told["checkpoints"], told["iterations"]]))
            print(
                f"the run kept no policy after iteration {at}; there are those after {kept}. "
                f"Add {at} to its `keep`.",
                file=sys.stderr,
            )
            return 1
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    for path in files:
        if path.name not in _OF_THE_RUN:
            _take(path, job.out / path.name)
    job.facts(iteration=told["iterations"] if at is None else at, algorithm=told["algorithm"])
    return 0


def _take(source: Path, target: Path) -> None:
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copyfile(source, target)


if __name__ == "__main__":
    sys.exit(main())
