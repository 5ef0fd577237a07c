"""Job of `benchmark.lm_eval`: runs lm-eval against the leased server and keeps what it wrote.

`python -m agentc_backends.evaluators.lm_eval.job_lm_eval JOB.json`
"""

from __future__ import annotations

import shutil
import sys

from agentc.program.job import Job
from agentc_backends.evaluators.common.running import ModelServer, run_command, run_evaluator
from agentc_backends.evaluators.common.samples import Evaluated, EvaluatorError
from agentc_backends.evaluators.lm_eval.command import LmEvalRules, lm_eval_command
from agentc_backends.evaluators.lm_eval.results import read_results


def evaluate(job: Job) -> Evaluated:
    """Run it and read its samples, which stay in `samples/` of the artifact."""
    rules = job.config.read_as(LmEvalRules)
    metric, network, _ = job.config["metric"], job.config["network"], job.config["files"]
    job.config.assert_all_read()
    out = job.out / "samples"
    shutil.rmtree(out, ignore_errors=True)
    server = ModelServer.of(job)
    words = lm_eval_command(rules, server, job.placement["concurrency"], out)
    try:
        run_command(job, words, server, {}, network=network)
    except EvaluatorError as error:
        hint = "; tasks that compare likelihoods need `options: {api: completions}`"
        raise EvaluatorError(f"{error}{hint if rules.api == 'chat' else ''}") from None
    return read_results(out, metric)


if __name__ == "__main__":
    sys.exit(run_evaluator("lm_eval", evaluate))
