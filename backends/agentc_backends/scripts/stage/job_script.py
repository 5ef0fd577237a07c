"""Job of script.run: lays the user's files out, tells the program where its inputs and its output
are, and runs it. Standard library only, Python 3.8: it runs in whatever software the spec names.

`python -m agentc_backends.scripts.stage.job_script JOB.json`
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentc.program.artifact_files import PAIRS_FILE, ROWS_FILE, SCORES_FILE, TRAJECTORIES_FILE
from agentc.program.child import die_with_parent
from agentc.program.job import Job, iterate_rows, load_job, read_json, write_json
from agentc.program.seccomp import NoNetworkError, refusing_network
from agentc_backends.user_files.layout import write_files

VARIABLE = "AGENTC_STAGE"
"""Holds the path of the JSON file that tells a script of its stage."""
_ROWS = (TRAJECTORIES_FILE, ROWS_FILE, PAIRS_FILE, SCORES_FILE)


def main() -> int:
    """Exit 0 where the script did; 1 with a message where it failed or could not be started."""
    job = load_job()
    config = job.config
    files, words = config["files"], list(config["words"])
    told = {
        "stage": job.id,
        "inputs": {role: [*_inputs(job, role)] for role in job.spec["inputs"]},
        "params": config["params"],
        "seed": config["seed"],
        "output": {"type": config["output"], "folder": str(job.out)},
    }
    network, is_python = config["network"], config["python"]
    config.assert_all_read()
    folder = write_files(job.work / "files", files)
    stage = job.work / "stage.json"
    write_json(stage, told)
    if is_python:
        words = [sys.executable, files[0]["path"], str(stage)]
    status = _run(job, words, folder, stage, network)
    if status == 0:
        _count(job)
        return 0
    name = files[0]["path"] if is_python else words[0]
    ended = f"exit status {status}" if status > 0 else signal.Signals(-status).name
    print(f"script: {name} ended with {ended}", file=sys.stderr)
    return 1


def _inputs(job: Job, role: str) -> Iterator[dict[str, Any]]:
    """Artifacts as a script is told of them; the manifest of each lies beside its data."""
    names = job.spec["input_objects"][role]
    for number, folder in enumerate(job.inputs(role)):
        manifest = read_json(folder.parent / "artifact.json")
        yield {"type": manifest.get("type"), "folder": str(folder), "object": names[number]}


def _run(job: Job, words: list[str], folder: Path, stage: Path, network: bool) -> int:
    variables = dict(os.environ, **{VARIABLE: str(stage)})
    # A script finds the modules beside it, as it does when it is run by hand.
    variables.pop("PYTHONSAFEPATH", None)
    variables["PYTHONDONTWRITEBYTECODE"] = "1"
    refuse = None
    if not network:
        try:
            refuse = refusing_network()
        except NoNetworkError as error:
            job.warn(f"nothing keeps the script from using a network: {error}")
    me = os.getpid()

    def confine() -> None:
        die_with_parent(signal.SIGKILL, me)
        if refuse is not None:
            refuse()

    try:
        return subprocess.call(
            words, cwd=str(folder), env=variables, stdin=subprocess.DEVNULL, preexec_fn=confine
        )
    except OSError as error:
        print(f"script: cannot start {words[0]}: {error}", file=sys.stderr)
        return 127


def _count(job: Job) -> None:
    """Say how many rows were made, where the artifact has rows."""
    for name in _ROWS:
        path = job.out / name
        if path.is_file():
            try:
                rows = sum(1 for _ in iterate_rows(path))
            except ValueError:
                return  # the contract says which row is broken
            job.facts(rows=rows)
            job.progress(rows, rows, "rows", force=True)


if __name__ == "__main__":
    sys.exit(main())
