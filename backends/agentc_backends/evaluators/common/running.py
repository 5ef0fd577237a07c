"""Runs an evaluator as a command in its own process, told where the leased server is.

Neighbours: `clients/leased.py` (what a lease is asked with), `scripts/stage/job_script.py`
(files of a stage, laid out).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from agentc.program.child import die_with_parent
from agentc.program.job import Job, load_job
from agentc_backends.clients.leased import token_of
from agentc_backends.evaluators.common.samples import Evaluated, EvaluatorError, write_evaluated
from agentc_backends.user_files.layout import lay_out


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelServer:
    """The leased server: `url` ends with `/v1`; `model` is its name there; `folder` holds the
    checkpoint that it serves, with its tokenizer."""

    url: str
    token: str | None
    model: str
    folder: Path

    @classmethod
    def of(cls, job: Job) -> ModelServer:
        """That of the job's policy; of several copies the first."""
        lease = job.leases["policy"]
        url = (lease.get("urls") or [lease["url"]])[0].rstrip("/")
        return cls(
            url=url if url.endswith("/v1") else url + "/v1",
            token=token_of(lease),
            model=lease["model"],
            folder=job.input("policy"),
        )


def run_command(
    job: Job,
    words: Sequence[str],
    server: ModelServer,
    variables: Mapping[str, str | None],
    *,
    network: bool,
    blank: Sequence[str] = (),
) -> None:
    """Start it in a folder that holds the stage's files and nothing else, but for `blank` ones that
    are empty where the stage has none. A variable that is None is taken away. Raises EvaluatorError
    where it does not end with 0."""
    empty = [{"path": name, "text": ""} for name in blank]
    folder = lay_out(job.work / "files", [*empty, *job.config["files"]])
    told = {name: value for name, value in os.environ.items() if name not in variables}
    told |= {name: value for name, value in variables.items() if value is not None}
    told["OPENAI_API_KEY"] = server.token or "none"
    # It finds the user's modules beside their tasks, as it does when it is run by hand.
    told.pop("PYTHONSAFEPATH", None)
    told["PYTHONDONTWRITEBYTECODE"] = "1"
    # A proxy of the site is for what is outside.
    host = urlsplit(server.url).hostname or ""
    told["NO_PROXY"] = told["no_proxy"] = ",".join(filter(None, (told.get("NO_PROXY"), host)))
    if not network:
        told |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1"}
    me = os.getpid()
    status = subprocess.call(
        [sys.executable, *words],
        cwd=folder,
        env=told,
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: die_with_parent(signal.SIGKILL, me),
    )
    if status:
        ended = f"exit status {status}" if status > 0 else signal.Signals(-status).name
        name = words[words.index("-m") + 1]
        offline = (
            "" if network else "; it was offline, `network: true` lets it fetch tasks and data"
        )
        raise EvaluatorError(f"{name} ended with {ended}, its last words are above{offline}")


def run_evaluator(name: str, evaluate: Callable[[Job], Evaluated]) -> int:
    """The whole program of an evaluator's job: exit 0 with the scores written, 1 with a message."""
    job = load_job()
    success_at = job.config["success_at"]
    try:
        write_evaluated(job, evaluate(job), success_at)
    except EvaluatorError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except (OSError, KeyError, TypeError, ValueError):
        traceback.print_exc()
        print(f"{name}: what the evaluator wrote is not as this version reads it", file=sys.stderr)
        return 1
    return 0
