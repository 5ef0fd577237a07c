"""Job of xtuner.sft: token rows made by agentc, trained on by XTuner's own training program."""

from __future__ import annotations

import os
import random
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agentc.runtime.program import Job, load_job
from agentc_backends.chat.formats import FormatError
from agentc_backends.chat.rows import Counts, MaskRules, RowsError, Side, encode_rows
from agentc_backends.chat.tokens import Encoder, load_encoder
from agentc_backends.models.checkpoint import settle_libraries
from agentc_backends.trl_trainers.deadline import Deadline
from agentc_backends.trl_trainers.job_sft import select_rows
from agentc_backends.trl_trainers.session import OutOfTimeError, input_rows
from agentc_backends.xtuner_trainer import training
from agentc_backends.xtuner_trainer.config_file import Machine, deepspeed, render
from agentc_backends.xtuner_trainer.conversion import export, into_transformers_4
from agentc_backends.xtuner_trainer.packing import packed_sequences
from agentc_backends.xtuner_trainer.schedule import length_of


def main() -> int:
    job = load_job()
    settle_libraries()
    try:
        train(job)
    except (FormatError, RowsError, training.TrainingFailedError) as error:
        print(f"xtuner.sft: {error}", file=sys.stderr)
        return 1
    except OutOfTimeError as stopped:
        print(f"xtuner.sft: out of time {stopped}, where a checkpoint is saved", file=sys.stderr)
        return os.EX_TEMPFAIL
    return 0


def train(job: Job) -> None:
    """Fine-tune the model of the job and write its checkpoint. Raises RowsError, FormatError,
    TrainingFailedError, OutOfTimeError."""
    import torch

    config = job.config
    settings = config["settings"]
    mask = config["mask"]
    chosen, left_out = select_rows(
        input_rows(job.inputs("data"), ("trajectories.jsonl", "rows.jsonl")), config["min_reward"]
    )
    config.assert_all_read()
    base, model = job.input("model"), job.work / "model"
    into_transformers_4(base, model)
    sides, counts = encode_rows(_encoder(model), chosen, MaskRules(**mask))
    packing = settings["pack_to_max_length"]
    if packing:
        random.Random(f"{settings['seed']}/pack").shuffle(sides)
        left_out["sequences"] = len(packed_sequences(sides, settings["max_length"]))
    rows = left_out["sequences"] if packing else len(sides)
    write_rows(sides, job.work / "rows")
    del sides  # the training process reads them from the disk

    processes = int(job.placement.get("processes") or 1)
    gpu = bool(torch.cuda.is_available())
    length = length_of(settings, rows, processes)
    # Iterations count what one process does, so checkpoints serve the same number of processes.
    work_dir = job.work / f"xtuner-{processes}"
    machine = Machine(
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
    if settings["zero_stage"] is not None:
        ds_file = job.logs / "deepspeed.json"
        ds_file.write_text(deepspeed(settings), encoding="utf-8")

    for note in (training.DIVERGED, training.STOPPED):
        (job.work / note).unlink(missing_ok=True)
    newest = training.newest_checkpoint(work_dir)
    done = training.iterations_of(newest)
    job.progress(done // settings["accumulative_counts"], length.steps, "steps", force=True)
    if done < length.iterations:
        argv = training.command(
            config_file, gpu=gpu, processes=processes, deepspeed=ds_file, resume=newest
        )
        try:
            training.run(argv, gpu=gpu, work=job.work)
        except training.TrainingFailedError as error:
            raise training.TrainingFailedError(_diverged(job) or str(error)) from None
        newest = training.newest_checkpoint(work_dir)
        if (job.work / training.STOPPED).exists():
            step = training.iterations_of(newest) // settings["accumulative_counts"]
            Deadline(job).stop(step, length.steps)
    if newest is None or training.iterations_of(newest) < length.iterations:
        raise training.TrainingFailedError(
            f"XTuner ended after {newest.name if newest else 'no checkpoint'}, not after "
            f"{length.iterations} iterations"
        )
    export(newest, model, base, job.out, settings["lora"])
    record_facts(job, counts, length.steps, processes, left_out)


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


def record_facts(
    job: Job, counts: Counts, steps: int, processes: int, more: dict[str, int]
) -> None:
    """Facts of the manifest: what became of the rows, steps, processes, versions."""
    from importlib.metadata import version

    facts: dict[str, Any] = {k: v for k, v in asdict(counts).items() if k != "untrained"}
    packages = ("torch", "transformers", "xtuner", "mmengine", "peft")
    job.facts(
        **facts,
        steps=steps,
        world_size=processes,
        versions={package: version(package) for package in packages},
        **more,
    )


def _encoder(model: Path) -> Encoder:
    try:
        return load_encoder(model)
    except FormatError:
        raise
    except Exception as error:  # the tokenizers library raises the bare class
        raise training.TrainingFailedError(
            f"transformers 4.48, which XTuner needs, cannot read the model's tokenizer: {error}"
        ) from None


def _diverged(job: Job) -> str | None:
    path = job.work / training.DIVERGED
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    raise SystemExit(main())
