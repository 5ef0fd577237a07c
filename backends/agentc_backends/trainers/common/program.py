"""The main program of every training job: it starts the processes, prints the errors that users can
fix, publishes the unchanged model where there is nothing to train on, and records facts."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agentc.kinds.training import EmptyInput
from agentc.program.artifact_files import SCORED_FILE, STEP_LOG_FILE
from agentc.program.job import Job, load_job
from agentc.runtime.machine.slurm_nodes import RendezvousError
from agentc_backends.data.chat.formats import FormatError, NoRowsError, RowsError
from agentc_backends.data.chat.rows import RowCounts
from agentc_backends.data.models.checkpoint import (
    WEIGHT_SUFFIXES,
    CheckpointError,
    companion_files,
    configure_libraries,
    is_unchanged,
    require_unquantised,
)
from agentc_backends.job_device import NoGpuError, require_gpus
from agentc_backends.trainers.common.checks import TrainingFailedError, TrainingOutOfTimeError
from agentc_backends.trainers.common.processes import (
    die_with_launcher,
    end_worker,
    first_process,
    process_count,
    relaunch,
)
from agentc_backends.trainers.common.step_log import max_grad_norm, step_facts


def run_trainer(name: str, train: Callable[[Job], None], *, module: str | None) -> int:
    """Run a training job. `module` is the program itself, for the launcher of several processes;
    None where `train` starts them."""
    job = load_job()
    if module is not None:
        try:
            relaunch(module, job.placement, str(job.path))
        except RendezvousError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        die_with_launcher()
    status = _status_of(name, train, job)
    end_worker(status)
    return status


def _status_of(name: str, train: Callable[[Job], None], job: Job) -> int:
    configure_libraries()
    on_empty = job.config.read_as(EmptyInput).on_empty
    try:
        require_gpus(job)
        for base in job.inputs("model"):
            require_unquantised(base)
        train(job)
    except NoRowsError as error:
        if first_process():
            print(f"{name}: {error}", file=sys.stderr)
        if on_empty == "error":
            return 1
        if first_process():
            keep_model(job, str(error))
    except (FormatError, RowsError, CheckpointError, TrainingFailedError, NoGpuError) as error:
        if first_process():
            print(f"{name}: {error}", file=sys.stderr)
        return 1
    except TrainingOutOfTimeError as stopped:
        if first_process():
            print(f"{name}: out of time {stopped}, where a checkpoint is saved", file=sys.stderr)
        # To a launcher 75 is a failure; the wrapper reads the progress.
        return 0 if "TORCHELASTIC_RUN_ID" in os.environ else os.EX_TEMPFAIL
    return 0


def record_facts(
    job: Job,
    counts: RowCounts,
    steps: int,
    packages: Sequence[str],
    *,
    processes: int | None = None,
    **more: Any,
) -> None:
    """Record facts of the manifest: what became of the rows, steps, processes (if they are not
    those that this program is one of), versions of packages."""
    if not first_process():
        return
    if counts.open_thoughts:
        job.warn(
            f"{counts.open_thoughts} trained replies do not close the thought that the model's "
            "chat template opens in their prompt: the policy learns to answer inside of it. Data "
            "with thoughts, or a built-in chat_format, would avoid that"
        )
    rows = {name: value for name, value in asdict(counts).items() if name != "untrained"}
    for name in ("masked", "identical"):
        # Facts that few trainings have are left out of the others.
        if not rows[name]:
            del rows[name]
    job.facts(
        **rows,
        **step_facts(job.logs / STEP_LOG_FILE, max_grad_norm(job.config)),
        **_compared(job),
        steps=steps,
        world_size=process_count() if processes is None else processes,
        versions={package: version(package) for package in packages},
        **more,
    )


def _compared(job: Job) -> dict[str, Any]:
    """Whether the policy is unchanged. Not for a critic, of which only a head may be trained."""
    same = is_unchanged(job.out, job.input("model")) if job.spec["kind"] != "critic" else None
    return {} if same is None else {"unchanged": same}


_MODEL_FILES = ("config.json", "generation_config.json", SCORED_FILE)
"""Files of a checkpoint, besides its weights, that belong to this model only."""


def keep_model(job: Job, because: str) -> None:
    """Publish the model that training would have started from, where there is nothing to train on
    and the spec allows that. The facts have no count of tokens."""
    base = job.input("model")
    weights = [path for path in sorted(base.iterdir()) if path.name.endswith(WEIGHT_SUFFIXES)]
    own = [base / name for name in _MODEL_FILES if (base / name).exists()]
    for path in (*own, *companion_files(base), *weights):
        _link(path, job.out / path.name)
    job.facts(kept_model=True, kept_because=because, steps=0)
    job.progress(0, 0, "steps", force=True)
    print("the model is handed on as it was: `on_empty: keep_model`")


def _link(source: Path, target: Path) -> None:
    """A hard link where the disk allows it: published files never change."""
    real = source.resolve()
    try:
        os.link(real, target)
    except OSError:
        shutil.copyfile(real, target)
