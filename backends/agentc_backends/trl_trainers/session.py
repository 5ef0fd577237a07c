"""What both trainers do around the trainer itself: settle the machine-dependent arguments, load
the data, resume, save the finished checkpoint, and record facts."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agentc.runtime.program import Job, load_job, read_rows
from agentc.runtime.rendezvous import RendezvousError
from agentc_backends.chat.formats import FormatError
from agentc_backends.chat.rows import Counts, RowsError
from agentc_backends.models.checkpoint import companion_files, settle_libraries
from agentc_backends.trl_trainers.checkpoints import newest_complete
from agentc_backends.trl_trainers.launch import die_with_parent, relaunch


class TrainingDivergedError(RuntimeError):
    """The loss became infinite or not a number."""


class OutOfTimeError(Exception):
    """Training stopped before its time limit, with a whole checkpoint saved."""


def run_trainer(name: str, module: str, train: Callable[[Job], None]) -> int:
    """The main program of a training job: launch, train, and turn what people can mend into a
    message instead of a traceback."""
    job = load_job()
    try:
        relaunch(module, job.placement, str(job.path))
    except RendezvousError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    die_with_parent()
    settle_libraries()
    try:
        train(job)
    except (FormatError, RowsError, TrainingDivergedError) as error:
        if first_process():
            print(f"{name}: {error}", file=sys.stderr)
        return 1
    except OutOfTimeError as stopped:
        if first_process():
            print(f"{name}: out of time {stopped}, where a checkpoint is saved", file=sys.stderr)
        # A launcher would take 75 for a failure; the wrapper knows from the progress line.
        return 0 if "TORCHELASTIC_RUN_ID" in os.environ else os.EX_TEMPFAIL
    return 0


def first_process() -> bool:
    """Whether this process writes files."""
    return os.environ.get("RANK", "0") == "0"


def process_count() -> int:
    """How many processes train."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def machine_arguments(job: Job) -> dict[str, Any]:
    """The arguments that only the machine can decide: where to write, and CPU or GPU."""
    import torch

    arguments: dict[str, Any] = {"output_dir": str(job.work)}
    if not torch.cuda.is_available():
        arguments |= {"use_cpu": True, "dataloader_pin_memory": False}
        if process_count() > 1:
            arguments["ddp_backend"] = "gloo"
    return arguments


def input_rows(directories: list[Path], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows of every directory, in order; each holds one of the files `names`."""
    rows: list[dict[str, Any]] = []
    for directory in directories:
        path = next((directory / n for n in names if (directory / n).exists()), None)
        if path is None:
            raise RowsError(f"an input holds none of {', '.join(names)}")
        rows += read_rows(path)
    return rows


def lora_config(lora: Mapping[str, Any] | None) -> Any:
    """The PEFT configuration of a `lora` mapping, or None."""
    if lora is None:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=lora["rank"],
        lora_alpha=lora["alpha"],
        lora_dropout=lora["dropout"],
        target_modules=lora["targets"] or "all-linear",
        task_type="CAUSAL_LM",
    )


def fit(trainer: Any, job: Job) -> None:
    """Train, from the newest whole checkpoint in the job's work folder if there is one. Raises
    OutOfTimeError."""
    from transformers.trainer_callback import PrinterCallback

    from agentc_backends.trl_trainers.time_limit import StopInTime

    # Progress goes to progress.json and logs/steps.jsonl instead of the standard output.
    trainer.remove_callback(PrinterCallback)
    resume = newest_complete(job.work) if first_process() else None
    if process_count() > 1:
        import torch.distributed

        # One process decides, for it also removes what is not whole.
        decided = [resume]
        torch.distributed.broadcast_object_list(decided, src=0)
        resume = decided[0]
    limit = StopInTime(job)
    trainer.add_callback(limit)
    trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
    limit.assert_not_stopped(trainer.state)


def save_checkpoint(trainer: Any, job: Job, base: Path) -> None:
    """Write the finished model into `job.out`: adapters merged, safetensors only, with the
    tokenizer, template and formats of the model that training started from."""
    if not first_process():
        return
    model = trainer.accelerator.unwrap_model(trainer.model)
    if hasattr(model, "merge_and_unload"):
        model = model.merge_and_unload()
    model.save_pretrained(str(job.out))
    for path in companion_files(base):
        shutil.copyfile(path, job.out / path.name)


def record_facts(job: Job, counts: Counts, steps: int, **more: Any) -> None:
    """Facts of the manifest: what became of the rows, steps, processes, versions."""
    if not first_process():
        return
    from importlib.metadata import version

    facts = {k: v for k, v in asdict(counts).items() if k != "untrained"}
    packages = ("torch", "transformers", "trl", "peft", "accelerate")
    job.facts(
        **facts,
        steps=steps,
        world_size=process_count(),
        versions={package: version(package) for package in packages},
        **more,
    )
