"""`python slurm_stand_in.py PLAN STORE SUBMISSIONS`: runs the open jobs of a plan, each with a
limit of 500 s, and says of its end what Snakemake says with the plugin for SLURM, whose numbers
go on in the file SUBMISSIONS. tests/slurm has the real ones."""

import os
import subprocess
import sys
import time
from pathlib import Path

from agentc.plan.work import object_of, read_plan
from agentc.runtime.layout import StoreLayout

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
    print(f"Job 1 has been submitted with SLURM jobid {number} (log: /x/rule_{rule}/{key}/1.log).")
    words = ["--plan", plan, "--store", store, "--job", job["id"]]
    status = subprocess.run(
        [sys.executable, "-m", "agentc.runtime.job", *words],
        env={**os.environ, "SLURM_JOB_ID": number, "PATH": "/usr/bin:/bin",
             "SLURM_JOB_END_TIME": str(int(time.time()) + 86400),
             "AGENTC_STOP_BY": str(time.time() + 500)},
        check=False,
    ).returncode  # fmt: skip
    if status:
        print(f"Error in rule {rule}:\n    message: SLURM-job '{number}' failed, ", end="")
        print("SLURM status is: 'FAILED'. For further error details see the cluster log.")
        code = 1
        break
sys.exit(code)
