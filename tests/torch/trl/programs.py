"""Job programs in processes of their own that are forked from one which has imported torch and TRL:
an import takes ten times as long as a small training, and several processes take several. As the
runtime starts them, from nothing and by their launcher, `jobs.start` does.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import runpy
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path

from tests.support.patience import PATIENCE_S

PROGRAM = "agentc_backends.trainers.trl.job_"
_IMPORTED = (
    "agentc_backends.trainers.trl.critic_trainers",
    "transformers.models.llama.modeling_llama",
    __name__,
)


def run_program(job_file: Path, module: str | None = None) -> tuple[int, str, str]:
    """(exit status, stdout, stderr) of a job program, in as many processes as the job asks for."""
    spec = json.loads(job_file.read_text())
    ranks = int(spec["placement"].get("processes") or 1)
    return run_module(module or PROGRAM + spec["kind"], str(job_file), ranks=ranks)


def run_module(module: str, *words: str, ranks: int = 1) -> tuple[int, str, str]:
    """(exit status, stdout, stderr) of a module that is run as a program with these words. The
    status is that of the first to fail."""
    context = _context()
    with tempfile.TemporaryDirectory() as folder:
        said = [Path(folder) / name for name in ("out", "err")]
        variables = [{}] if ranks == 1 else _meeting(ranks)
        started = [
            context.Process(target=_play, args=((module, *words), each, *map(str, said)))
            for each in variables
        ]
        for process in started:
            process.start()
        for process in started:
            process.join(PATIENCE_S)
            if process.exitcode is None:
                process.kill()
        failed = [process.exitcode for process in started if process.exitcode != 0]
        out, err = (path.read_text() if path.exists() else "" for path in said)
    return (failed[0] or -1) if failed else 0, out, err


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    return context


def _meeting(ranks: int) -> list[dict[str, str]]:
    """What torch.distributed.run tells each of its processes."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(ranks)}
    common |= {"LOCAL_WORLD_SIZE": str(ranks)}
    return [{**common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(ranks)]


def _play(words: Sequence[str], variables: Mapping[str, str], out: str, err: str) -> None:
    os.environ.update(variables)
    for name, number in ((out, 1), (err, 2)):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, number)
    sys.argv = list(words)
    sys.modules.pop(words[0], None)  # it is not to be found imported when it is run
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
