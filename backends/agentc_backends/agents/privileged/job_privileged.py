"""Job: hidden texts. `python -m agentc_backends.agents.privileged.job_privileged JOB.json`.

Texts go from the environment's answer into the file, and nowhere else.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agentc.kinds.interaction import PrivilegedSettings
from agentc.program.artifact_files import PRIVILEGED_FILE
from agentc.program.job import Job
from agentc_backends.agents.common.episode import split_tasks
from agentc_backends.agents.common.failures import FatalError
from agentc_backends.agents.common.program import run_job
from agentc_backends.clients.errors import BadRequestError
from agentc_backends.clients.leases import environment_client

_AT_ONCE = 64


async def collect(job: Job) -> None:
    """Ask for the texts of the job's tasks and write privileged.jsonl. Raises FatalError."""
    settings = job.config.read_as(PrivilegedSettings)
    job.config.assert_all_read()
    environment = environment_client(job.leases["environment"], concurrency=1)
    rows: list[dict[str, Any]] = []
    try:
        tasks = split_tasks(await environment.meta(), settings.split, settings.limit)
        for start in range(0, len(tasks), _AT_ONCE):
            asked = tasks[start : start + _AT_ONCE]
            for task, told in zip(asked, await environment.hidden(asked), strict=True):
                rows.append(_row(task, settings.split, told))
            job.progress(len(rows), len(tasks), "texts")
    except BadRequestError as error:
        raise FatalError(str(error)) from error
    finally:
        await environment.close_connections()
    sizes = [len(row["text"]) for row in rows]
    job.facts(texts=len(rows), characters=sum(sizes), longest_text=max(sizes))
    write_private(job.out / PRIVILEGED_FILE, rows)


def _row(task: str, split: str, told: dict[str, str]) -> dict[str, Any]:
    """Raises FatalError."""
    text = told["text"]
    if told["task_id"] != task or not text.strip():
        raise FatalError(f"the environment has no hidden text for the task {task!r}")
    return {
        "id": task,
        "task_id": task,
        "split": split,
        "text": text,
        "media": told["media"],
        "sha256": hashlib.sha256(text.encode("utf-8")).hexdigest(),
    }


def write_private(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """A JSONL file that never was readable for others."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows)


if __name__ == "__main__":
    sys.exit(run_job("privileged", collect))
