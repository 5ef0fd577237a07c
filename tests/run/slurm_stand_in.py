"""`python slurm_stand_in.py PLAN STORE SUBMISSIONS`: runs the open jobs of a plan, each with a
limit of 500 s, and says of its end what Snakemake says with the plugin for SLURM, whose numbers
go on in the file SUBMISSIONS. Where there is SUBMISSIONS.away, the controller is away as the first
job begins; where there is SUBMISSIONS.late, the first job fails after its wrapper is done.
tests/slurm has the real ones."""

import os
import subprocess
import sys
import time
from pathlib import Path

from agentc.plan.work import object_of, read_plan
from agentc.runtime.store.layout import StoreLayout

AWAY = "Unable to contact slurm controller (connect failure)"
plan, store, submissions = sys.argv[1:4]
layout = StoreLayout(store)
code = 0
for job in read_plan(Path(plan))["jobs"]:
    name = object_of(job)
    if layout.is_published(name):
        continue
    with Path(submissions).open("a") as out:
        out.write(job["id"] + "\n")
    number = str(100 + len(Path(submissions).read_text().splitlines()))
    rule, key = name.split("/")
    log = Path(submissions).parent / "slurm logs" / f"rule_{rule}" / key / f"{number}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    print(f"Job 1 has been submitted with SLURM jobid {number} (log: {log}).")
    away = Path(submissions).with_suffix(".away")
    if away.exists():
        away.unlink()
        said = f"Unable to confirm allocation for job {number}: {AWAY}"
        log.write_text(f"rule {rule}:\nsrun: error: {said}\nError in rule {rule}:\n")
        status = 1
    else:
        words = ["--plan", plan, "--store", store, "--job", job["id"]]
        status = subprocess.run(
            [sys.executable, "-m", "agentc.runtime.job", *words],
            env={**os.environ, "SLURM_JOB_ID": number, "PATH": "/usr/bin:/bin",
                 "SLURM_JOB_END_TIME": str(int(time.time()) + 86400),
                 "AGENTC_STOP_BY": str(time.time() + 500)},
            check=False,
        ).returncode  # fmt: skip
    late = Path(submissions).with_suffix(".late")
    if late.exists():
        late.unlink()
        status = 1
    if status:
        print(f"Error in rule {rule}:\n    message: SLURM-job '{number}' failed, ", end="")
        print("SLURM status is: 'FAILED'. For further error details see the cluster log.")
        code = 1
        break
sys.exit(code)
