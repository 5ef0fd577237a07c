"""Runs `xtuner train` on a configuration file, from the newest whole checkpoint of its own, and
says in a line why it failed.

The file that `xtuner train` starts is run as a module: the command itself always ends with status 0
and takes whatever `python` stands first on PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from agentc.program.child import die_with_parent
from agentc_backends.trainers.common.endings import TrainingFailedError

TRAIN = "xtuner.tools.train"
ON_CPU = "agentc_backends.trainers.xtuner.on_cpu"
DIVERGED = "diverged.txt"
"""In the job's work folder: what to tell people, when the loss is no longer a number."""
STOPPED = "stopped"
"""There as well: the training saved a checkpoint and stopped before the time limit."""
_ERROR = re.compile(r"^(?:\[rank\d+\]: ?)?([A-Za-z_][\w.]*(?:Error|Exception|Interrupt)\b.*)")


def command(
    config: Path, *, gpu: bool, processes: int, deepspeed: Path | None, resume: Path | None
) -> list[str]:
    """The argv of the training process, or of the launcher of several."""
    program = ["-m", TRAIN] if gpu else ["-m", ON_CPU, TRAIN]
    argv = [sys.executable]
    # DeepSpeed asks for a process group even where one process trains.
    launched = processes > 1 or deepspeed is not None
    if launched:
        argv += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    argv += [*program, str(config)]
    if deepspeed is not None:
        argv += ["--deepspeed", str(deepspeed)]
    if resume is not None:
        argv += ["--resume", str(resume)]
    return [*argv, "--launcher", "pytorch"] if launched else argv


def run(argv: Sequence[str], *, gpu: bool, work: Path) -> None:
    """Run it, with its output passed on; `work` is the job's work folder. Raises
    TrainingFailedError with its last error."""
    me = os.getpid()
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_variables(gpu, work),
        # A launcher of several processes ends them when it is asked to end.
        preexec_fn=lambda: die_with_parent(signal.SIGTERM, me),
    )
    assert process.stdout is not None
    last: deque[str] = deque(maxlen=400)
    for raw in process.stdout:
        line = raw.decode("utf-8", "replace").rstrip("\n")
        last.append(line)
        print(line, flush=True)
    status = process.wait()
    if status < 0:
        name = signal.Signals(-status).name
        raise TrainingFailedError(f"training was ended by {name}; is the memory enough?")
    if status:
        raise TrainingFailedError(f"training ended with status {status}: {last_error(last)}")


def last_error(lines: Sequence[str]) -> str:
    """What went wrong, from the end of a Python program's output."""
    for line in reversed(lines):
        found = _ERROR.match(line.strip())
        if found and "ChildFailedError" not in line:
            return found.group(1)
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def newest_checkpoint(work_dir: Path) -> Path | None:
    """The newest whole checkpoint; removes those that were cut off.

    A file is whole when its zip directory, which is written last, is there. Of directories
    (DeepSpeed) only the newest can be cut off: mmengine names it in `last_checkpoint` when it is
    whole.
    """
    note = work_dir / "last_checkpoint"
    named = Path(note.read_text(encoding="utf-8")).name if note.exists() else ""
    paths = sorted(work_dir.glob("iter_*.pth"), key=iterations_of)
    for path in reversed(paths):
        if path.is_dir():
            if path is not paths[-1] or path.name == named:
                return path
            shutil.rmtree(path)
        elif zipfile.is_zipfile(path):
            return path
        else:
            path.unlink()
    return None


def iterations_of(checkpoint: Path | None) -> int:
    """After how many iterations a checkpoint was saved; 0 without one."""
    return 0 if checkpoint is None else int(checkpoint.stem.rsplit("_", 1)[1])


def _variables(gpu: bool, work: Path) -> dict[str, str]:
    variables = dict(os.environ)
    # The checkpoints are the job's own; mmengine reads them with pickled states of its optimiser.
    variables["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    variables.setdefault("MPLBACKEND", "Agg")
    if not gpu:
        variables["DS_ACCELERATOR"] = "cpu"
        # DeepSpeed compiles an operator here. A lock that a killed compiler left would stop the
        # next one for ever.
        extensions = work / "torch_extensions"
        if any(extensions.rglob("lock")):
            shutil.rmtree(extensions)
        variables["TORCH_EXTENSIONS_DIR"] = str(extensions)
    return variables
