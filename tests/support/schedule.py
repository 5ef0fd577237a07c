"""`python schedule.py PLAN STORE`: starts the wrappers of a plan as Snakemake would, two at a time,
each once its inputs are there. It starts in a tenth of the time, so that a hundred rounds of two
runs fit into a test; tests/store/test_two_runs.py has rounds with Snakemake too."""

import json
import subprocess
import sys
import time

from agentc.runtime.store.layout import StoreLayout

plan, store = sys.argv[1:3]
layout = StoreLayout(store)
with open(plan) as text:  # noqa: PTH123
    jobs = {f"{job['kind']}/{job['key']}": job for job in json.load(text)["jobs"]}
waiting, running, failed = dict(jobs), {}, False
while (waiting and not failed) or running:
    for name, process in list(running.items()):
        if process.poll() is not None:
            del running[name]
            failed = failed or process.returncode != 0
    for name, job in list(waiting.items()):
        inputs = [one for names in job["inputs"].values() for one in names]
        if not failed and len(running) < 2 and all(map(layout.is_published, inputs)):
            del waiting[name]
            if not layout.is_published(name):
                words = ["--plan", plan, "--store", store, "--job", job["id"]]
                running[name] = subprocess.Popen(
                    [sys.executable, "-m", "agentc.runtime.job", *words]
                )
    time.sleep(0.01)
sys.exit(1 if failed else 0)
