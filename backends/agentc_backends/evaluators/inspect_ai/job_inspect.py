"""Job of `benchmark.inspect`: runs inspect against the leased server, once for each attempt, and
keeps its logs.

`python -m agentc_backends.evaluators.inspect_ai.job_inspect JOB.json`
"""

from __future__ import annotations

import os
import shutil
import sys

from agentc.program.job import Job, write_json
from agentc_backends.evaluators.common.running import ModelServer, run_command, run_evaluator
from agentc_backends.evaluators.common.samples import Evaluated
from agentc_backends.evaluators.inspect_ai.command import (
    InspectRules,
    inspect_command,
    inspect_variables,
)
from agentc_backends.evaluators.inspect_ai.logs import read_log
from agentc_backends.evaluators.inspect_ai.results import evaluated


def evaluate(job: Job) -> Evaluated:
    """Run it and read its logs, which stay in `samples/ATTEMPT/` of the artifact."""
    rules = job.config.read_as(InspectRules)
    metric, network, _ = job.config["metric"], job.config["network"], job.config["files"]
    job.config.assert_all_read()
    out, own, params = job.out / "samples", job.work / "inspect", job.work / "params.json"
    shutil.rmtree(out, ignore_errors=True)
    shutil.rmtree(own, ignore_errors=True)
    write_json(params, rules.params)
    server = ModelServer.of(job)
    variables = inspect_variables(server, os.environ, own)
    attempts = []
    for attempt in range(rules.epochs):
        place = out / str(attempt)
        words = inspect_command(rules, server, job.placement["concurrency"], attempt, place, params)
        # It would read a file `.env` of any folder above, which is no part of the stage.
        run_command(job, words, server, variables, network=network, blank=[".env"])
        attempts.append([read_log(path) for path in sorted(place.glob("*.eval"))])
    return evaluated(attempts, rules.params, metric)


if __name__ == "__main__":
    sys.exit(run_evaluator("inspect", evaluate))
