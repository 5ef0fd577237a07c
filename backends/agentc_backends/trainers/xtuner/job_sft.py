"""Job of xtuner.sft: XTuner's own training program on token rows made by agentc.

The module that `xtuner train` starts is run directly, from its newest complete checkpoint: the
command itself always exits with status 0 and runs the first `python` on PATH.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from agentc.kinds.training import RowChoice
from agentc.program.child import die_with_parent
from agentc.program.job import Job
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.rows import MaskRules, Side, encode_rows, warn_of_forgotten
from agentc_backends.data.chat.tokens import Encoder, load_encoder
from agentc_backends.data.models.checkpoint import require_lora_targets
from agentc_backends.job_device import job_device
from agentc_backends.trainers.common.checkpoints import Deadline
from agentc_backends.trainers.common.checks import TrainingFailedError, require_attention
from agentc_backends.trainers.common.program import record_facts, run_trainer
from agentc_backends.trainers.common.rows import prompts_of, rows_to_imitate
from agentc_backends.trainers.common.scoring import sample_of
from agentc_backends.trainers.xtuner.config_file import MachineSettings, deepspeed, render
from agentc_backends.trainers.xtuner.conversion import export, into_transformers_4
from agentc_backends.trainers.xtuner.schedule import DIVERGED, STOPPED, length_of, packed_sequences
from agentc_backends.trainers.xtuner.settings import XtunerSettings

TRAIN = "xtuner.tools.train"
ON_CPU = "agentc_backends.trainers.xtuner.on_cpu"
_ERROR = re.compile(r"^(?:\[rank\d+\]: ?)?([A-Za-z_][\w.]*(?:Error|Exception|Interrupt)\b.*)")


def training_command(
    config: Path, *, gpu: bool, processes: int, deepspeed: Path | None, resume: Path | None
) -> list[str]:
    """The argv of the training process, or of the launcher of several processes."""
    program = ["-m", TRAIN] if gpu else ["-m", ON_CPU, TRAIN]
    argv = [sys.executable]
    # DeepSpeed needs a process group even for one process.
    launched = processes > 1 or deepspeed is not None
    if launched:
        argv += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    argv += [*program, str(config)]
    if deepspeed is not None:
        argv += ["--deepspeed", str(deepspeed)]
    if resume is not None:
        argv += ["--resume", str(resume)]
    return [*argv, "--launcher", "pytorch"] if launched else argv


def run_training(argv: Sequence[str], *, gpu: bool, work: Path) -> None:
    """Run a training process and print its output; `work` is the job's work folder. Raises
    TrainingFailedError with its last error."""
    parent = os.getpid()
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_variables(gpu, work),
        # On SIGTERM a launcher ends its processes.
        preexec_fn=lambda: die_with_parent(signal.SIGTERM, parent),
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
    """The error at the end of a Python program's output."""
    for line in reversed(lines):
        found = _ERROR.match(line.strip())
        if found and "ChildFailedError" not in line:
            return found.group(1)
    return next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")


def newest_checkpoint(work_dir: Path) -> Path | None:
    """The newest complete checkpoint; deletes incomplete ones.

    A file is complete if it has its zip directory, which is written last. Of directories
    (DeepSpeed) only the newest can be incomplete: mmengine names it in `last_checkpoint` when it is
    complete.
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
        # DeepSpeed compiles an operator here. The lock of a killed compiler would block the next
        # one forever.
        extensions = work / "torch_extensions"
        if any(extensions.rglob("lock")):
            shutil.rmtree(extensions)
        variables["TORCH_EXTENSIONS_DIR"] = str(extensions)
    return variables


_PACKAGES = ("torch", "transformers", "xtuner", "mmengine", "peft")
"""The packages whose versions are facts."""


def train(job: Job) -> None:
    """Fine-tune the model of the job and write its checkpoint. Raises RowsError, FormatError,
    TrainingFailedError, OutOfTimeError."""
    config = job.config
    settings = config.read_as(XtunerSettings, at="settings")
    mask = config.read_as(MaskRules, at="mask")
    chosen, left_out = rows_to_imitate(job, config.read_as(RowChoice))
    config.assert_all_read()
    require_attention(settings.attention)
    base, model = job.input("model"), job.work / "model"
    into_transformers_4(base, model)
    require_lora_targets(model, (settings.lora or {}).get("targets") or ())
    encoder = _encoder(model)
    sides, counts = encode_rows(encoder, chosen, mask)
    warn_of_forgotten(job, counts)
    packing = settings.pack_to_max_length
    if packing:
        random.Random(f"{settings.seed}/pack").shuffle(sides)
        left_out["sequences"] = len(packed_sequences(sides, settings.max_length))
    rows = left_out["sequences"] if packing else len(sides)
    write_rows(sides, job.work / "rows")
    sample = sample_of(encoder, sides, prompts_of(chosen))
    del sides  # the training process reads them from the disk

    processes = int(job.placement.get("processes") or 1)
    gpu = job_device(job).type == "cuda"
    length = length_of(settings, rows, processes)
    # Iterations are those of one process, so a checkpoint needs the same number of processes.
    work_dir = job.work / f"xtuner-{processes}"
    machine = MachineSettings(
        model=str(model),
        rows=str(job.work / "rows"),
        work_dir=str(work_dir),
        job_file=str(job.path),
        gpu=gpu,
        processes=processes,
    )
    config_file = job.logs / "xtuner_config.py"
    config_file.write_text(render(settings, length, machine), encoding="utf-8")
    ds_file = None
    if settings.zero_stage is not None:
        ds_file = job.logs / "deepspeed.json"
        ds_file.write_text(deepspeed(settings), encoding="utf-8")

    for note in (DIVERGED, STOPPED):
        (job.work / note).unlink(missing_ok=True)
    newest = newest_checkpoint(work_dir)
    done = iterations_of(newest)
    job.progress(done // settings.accumulative_counts, length.steps, "steps", force=True)
    if done < length.iterations:
        argv = training_command(
            config_file, gpu=gpu, processes=processes, deepspeed=ds_file, resume=newest
        )
        try:
            run_training(argv, gpu=gpu, work=job.work)
        except TrainingFailedError as error:
            raise TrainingFailedError(_diverged(job) or str(error)) from None
        newest = newest_checkpoint(work_dir)
        if (job.work / STOPPED).exists():
            step = iterations_of(newest) // settings.accumulative_counts
            Deadline(job).stop(step, length.steps)
    if newest is None or iterations_of(newest) < length.iterations:
        raise TrainingFailedError(
            f"XTuner ended after {newest.name if newest else 'no checkpoint'}, not after "
            f"{length.iterations} iterations"
        )
    export(newest, model, base, job.out, settings.lora, settings.save_dtype, sample)
    record_facts(job, counts, length.steps, _PACKAGES, processes=processes, **left_out)


def write_rows(sides: list[Side], folder: Path) -> None:
    """Save the rows as the data set that XTuner loads: columns input_ids and labels."""
    from datasets import Dataset, disable_progress_bars

    disable_progress_bars()
    shutil.rmtree(folder, ignore_errors=True)
    columns = {
        "input_ids": [side.ids for side in sides],
        "labels": [side.labels() for side in sides],
    }
    Dataset.from_dict(columns).save_to_disk(str(folder))


def _encoder(model: Path) -> Encoder:
    try:
        return load_encoder(model)
    except FormatError:
        raise
    except Exception as error:  # the tokenizers library raises the bare class
        raise TrainingFailedError(
            f"transformers 4.48, which XTuner needs, cannot read the model's tokenizer: {error}"
        ) from None


def _diverged(job: Job) -> str | None:
    path = job.work / DIVERGED
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    raise SystemExit(run_trainer("xtuner.sft", train, module=None))
