"""A job program that writes trajectories, slowly if asked to, and resumes from its work folder.

Config: `rows`, `delay` (seconds a row), `exit` (status at the end), `fail_times` (attempts that
exit 75 first), `spoil` (one row gets a fault), `children` (processes that outlive it), `call`
(ask the policy server once for each row), `say` (printed), `echo` (variables printed), `run`
(a command line that is run first), `heed` (seconds before `stop_by` at which it stops),
`stop_after` (rows of an attempt after which it stops, where there is a `stop_by`), `stop_with` (its
status then, as a launcher of its own may give it), `hold_after` (rows of the first attempt after
which it waits to be killed), `go_on` (a file for which it waits after two rows).
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from agentc.program.job import load_job

job = load_job()
values = job.spec["config"]
for name in values.get("echo", []):
    print(name, "=", os.environ.get(name))
print(values.get("say", "working"), flush=True)
if values.get("run"):
    subprocess.run(values["run"], check=True)
if values.get("children"):
    for extra in ({}, {"start_new_session": True}):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], **extra)

kept = job.work / "rows.jsonl"
rows = kept.read_text().splitlines() if kept.exists() else []
count = values.get("rows", 3)
with kept.open("a") as out:
    for number in range(len(rows), count):
        left = job.time_left()
        made = number - len(rows)
        late = left is not None and (
            left < values.get("heed", 0) or made >= values.get("stop_after", count)
        )
        if late:
            job.progress(number, count, "rows", force=True)
            sys.exit(values.get("stop_with", job.out_of_time()))
        if not rows and number == values.get("hold_after"):
            time.sleep(600)
        while number == 2 and values.get("go_on") and not Path(values["go_on"]).exists():
            time.sleep(0.05)
        time.sleep(values.get("delay", 0.0))
        if values.get("call"):
            lease = job.leases["policy"]
            body = {"model": lease["model"], "prompt": "x", "max_tokens": 1}
            request = urllib.request.Request(
                lease["url"] + "/v1/completions",
                data=json.dumps(body).encode(),
                headers={"Authorization": "Bearer " + lease["token"]},
            )
            urllib.request.urlopen(request, timeout=600).read()
        row = {
            "id": f"task{number}#0",
            "task_id": f"task{number}",
            "attempt": 0,
            "seed": number,
            "prompt_seed": 0,
            "split": "train",
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": f"Action: {number}"},
            ],
            "prompt_length": 1,
            "reward": 1.0,
            "success": True,
            "end": "success",
            "error": None,
            "turns": 1,
            "invalid": 0,
            "rewards": [1.0],
            "tokens": {"prompt": 1, "completion": 1},
            "source": "policy",
        }
        if number == 0:
            row.update(values.get("spoil", {}))
        out.write(json.dumps(row) + "\n")
        out.flush()
        job.progress(number + 1, count, "rows", force=True, rows_per_s=1.0)

attempts = job.work / "attempts"
with attempts.open("a") as out:
    out.write("x")
if len(attempts.read_text()) <= values.get("fail_times", 0):
    sys.exit(75)
if values.get("exit"):
    print("about to fail")
    sys.exit(values["exit"])
(job.out / "trajectories.jsonl").write_text(kept.read_text())
job.facts(rows=count, trained_tokens=values.get("trained_tokens", 1))
