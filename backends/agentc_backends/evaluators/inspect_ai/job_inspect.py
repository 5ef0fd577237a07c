"""Job of `benchmark.inspect`: runs inspect 0.3.285 against the leased server, once for each
attempt, and keeps its logs.

`python -m agentc_backends.evaluators.inspect_ai.job_inspect JOB.json`
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agentc.program.job import Job, write_json
from agentc_backends.evaluators.common.evaluator import (
    EvaluatorResult,
    EvaluatorRules,
    ModelServer,
    run_command,
    run_evaluator,
)
from agentc_backends.evaluators.inspect_ai.logs import evaluation_of_logs, read_log
from agentc_backends.evaluators.inspect_ai.settings import InspectOptions


def evaluate(job: Job) -> EvaluatorResult:
    """Run it and read its logs, which stay in `samples/ATTEMPT/` of the artifact."""
    rules = job.config.read_as(InspectRules)
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
        run_command(job, rules, words, server, variables, blank=[".env"])
        attempts.append([read_log(path) for path in sorted(place.glob("*.eval"))])
    return evaluation_of_logs(attempts, rules.params, rules.metric)


_SERVICE = "leased"
"""inspect looks for address and key of `openai-api/SERVICE/...` in variables that begin with it."""
_RETRIES = 5
"""Of a request: without a bound inspect would wait for a server that is gone, for hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectRules(EvaluatorRules, InspectOptions):
    """What a stage says of an evaluation by inspect."""


def inspect_command(
    rules: InspectRules,
    server: ModelServer,
    concurrency: int,
    attempt: int,
    out: Path,
    params: Path,
) -> list[str]:
    """Words after the interpreter, for one attempt at every sample: requests of several would have
    one seed, and with it one reply. `params` is a file with the rules' params; logs go to `out`."""
    # -P: it adds the folder of a task itself, behind the standard library.
    words = ["-P", "-m", "inspect_ai", "eval", *rules.tasks]
    words += ["--model", f"openai-api/{_SERVICE}/{server.model}"]
    words += ["--epochs", "1", "--seed", str(rules.seed + attempt)]
    words += ["--max-connections", str(concurrency), "--max-retries", str(_RETRIES)]
    words += ["--log-dir", str(out), "--log-format", "eval", "--display", "plain"]
    words += ["--ctl-server", "false"]
    words += ["--task-config", str(params)] if rules.params else []
    for word, value in (
        ("--limit", rules.limit),
        ("--system-message", rules.system),
        ("--temperature", rules.temperature),
        ("--max-tokens", rules.max_tokens),
    ):
        words += [] if value is None else [word, str(value)]
    return words


def inspect_variables(
    server: ModelServer, inherited: Iterable[str], own: Path
) -> dict[str, str | None]:
    """Variables for it; None takes one away. Its settings of whoever runs this are no part of the
    stage, and its cache of replies must be empty: it knows a model by its name and address alone,
    which two checkpoints can share. `own` is a folder for what it would keep under a home."""
    return {
        **{name: None for name in inherited if name.startswith("INSPECT_")},
        f"{_SERVICE.upper()}_BASE_URL": server.url,
        f"{_SERVICE.upper()}_API_KEY": server.token or "none",
        "INSPECT_CACHE_DIR": str(own / "cache"),
        "XDG_DATA_HOME": str(own),
    }


if __name__ == "__main__":
    sys.exit(run_evaluator("inspect", evaluate))
