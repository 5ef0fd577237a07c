"""Runs an evaluator as a command in its own process against the leased server, and writes what it
said of each sample, as rows of TaskScores, and beside them `evaluator.json`: by which program, of
which tasks, and by which measure."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agentc.kinds.evaluation import BenchmarkDecode, BenchmarkRun
from agentc.program.artifact_files import SCORES_FILE
from agentc.program.child import die_with_parent
from agentc.program.job import Job, load_job, write_json, write_rows
from agentc_backends.clients.leases import token_of
from agentc_backends.user_files.layout import write_files

ABOUT = "evaluator.json"


class EvaluatorError(Exception):
    """The evaluator failed, or what it wrote cannot be scored; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredSample:
    """`score` None: the evaluator could not tell it, as where a request failed."""

    task: str
    id: str
    score: float | None
    attempt: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorResult:
    """The samples of all tasks. `release` is the evaluator with its version; `tasks` says of each
    what decides the meaning of its scores, for those who compare them with others."""

    release: str
    metric: str
    tasks: Mapping[str, Mapping[str, Any]]
    samples: Sequence[ScoredSample]


def score_of(value: object) -> float | None:
    """A finite number as such; None for anything else."""
    if isinstance(value, (bool, int, float)) and math.isfinite(value):
        return float(value)
    return None


def choose_metric(asked: str | None, known: Iterable[str], samples: str = "samples") -> str:
    """The measure that a stage asks for, by its whole name or what stands before its comma, or the
    only one that there is. Raises EvaluatorError."""
    names = sorted(set(known))
    if not names:
        raise EvaluatorError(f"no measure gives a number of every one of the {samples}")
    if asked is None:
        found = names
    else:
        found = [name for name in names if asked == name or asked == name.partition(",")[0]]
        exact = [name for name in found if name == asked]
        found = exact or found
    if len(found) == 1:
        return found[0]
    what = "`metric` has to say which" if asked is None else f"there is no single {asked!r}"
    raise EvaluatorError(f"{what}: the measures of single samples are {', '.join(names)}")


def metric_of_tasks(asked: str | None, known: Mapping[str, Iterable[str]]) -> str:
    """The measure of all tasks, of those that each has. Raises EvaluatorError."""
    shared = set.intersection(*(set(names) for names in known.values()))
    if not shared and len(known) > 1:
        told = "; ".join(f"{task}: {', '.join(names)}" for task, names in known.items())
        raise EvaluatorError(f"the tasks share no measure, so give each a stage of its own: {told}")
    return choose_metric(asked, shared, f"samples of {', '.join(known)}")


def write_evaluation(job: Job, found: EvaluatorResult, success_at: float | None) -> None:
    """scores.jsonl and evaluator.json of a job, its facts, and a line for each task."""
    rows = [
        {
            "task": f"{sample.task}/{sample.id}",
            "attempt": sample.attempt,
            "score": sample.score,
            **(
                {}
                if success_at is None or sample.score is None
                else {"success": sample.score >= success_at}
            ),
        }
        for sample in found.samples
    ]
    write_rows(job.out / SCORES_FILE, rows)
    write_json(
        job.out / ABOUT,
        {
            "release": found.release,
            "metric": found.metric,
            "tasks": {name: dict(facts) for name, facts in found.tasks.items()},
            "success_at": success_at,
        },
    )
    means: dict[str, float] = {}
    for task in found.tasks:
        scores = [s.score for s in found.samples if s.task == task and s.score is not None]
        if scores:
            means[task] = sum(scores) / len(scores)
            print(f"{task}: {found.metric} {means[task]:.4f} over {len(scores)} samples")
    errors = sum(sample.score is None for sample in found.samples)
    job.facts(rows=len(rows), errors=errors, evaluator=found.release, by_task=means)
    job.progress(len(rows), len(rows), "rows", force=True)
    if errors:
        job.warn(f"{errors} of {len(rows)} samples have no score; they are left out of all means")


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
            folder=job.input("model"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorRules(BenchmarkRun, BenchmarkDecode):
    """What the programs of all evaluators read. `tasks` by their names or files; `files` of the
    user's, each with its path in the folder that the evaluator starts in."""

    tasks: tuple[str, ...]
    files: tuple[Mapping[str, str], ...] = ()


def run_command(
    job: Job,
    rules: EvaluatorRules,
    words: Sequence[str],
    server: ModelServer,
    variables: Mapping[str, str | None],
    *,
    blank: Sequence[str] = (),
) -> None:
    """Start it in a folder that holds the stage's files and nothing else, but for `blank` ones that
    are empty where the stage has none. A variable that is None is taken away. Raises EvaluatorError
    where it does not end with 0."""
    empty = [{"path": name, "text": ""} for name in blank]
    folder = write_files(job.work / "files", [*empty, *rules.files])
    told = {name: value for name, value in os.environ.items() if name not in variables}
    told |= {name: value for name, value in variables.items() if value is not None}
    told["OPENAI_API_KEY"] = server.token or "none"
    # It finds the user's modules beside their tasks, as it does when it is run by hand.
    told.pop("PYTHONSAFEPATH", None)
    told["PYTHONDONTWRITEBYTECODE"] = "1"
    # A proxy of the site is for what is outside.
    host = urlsplit(server.url).hostname or ""
    told["NO_PROXY"] = told["no_proxy"] = ",".join(filter(None, (told.get("NO_PROXY"), host)))
    if not rules.network:
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
            ""
            if rules.network
            else "; it was offline, `network: true` lets it fetch tasks and data"
        )
        raise EvaluatorError(f"{name} ended with {ended}, its last words are above{offline}")


def run_evaluator(name: str, evaluate: Callable[[Job], EvaluatorResult]) -> int:
    """The whole program of an evaluator's job: exit 0 with the scores written, 1 with a message."""
    job = load_job()
    success_at = job.config.read_as(BenchmarkRun).success_at
    try:
        write_evaluation(job, evaluate(job), success_at)
    except EvaluatorError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except (OSError, KeyError, TypeError, ValueError):
        traceback.print_exc()
        print(f"{name}: what the evaluator wrote is not as this version reads it", file=sys.stderr)
        return 1
    return 0
