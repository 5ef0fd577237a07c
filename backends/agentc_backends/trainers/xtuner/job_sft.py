"""Job of xtuner.sft: token rows made by agentc, trained on by XTuner's own training program."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from agentc.program.job import Job
from agentc_backends.data.chat.formats import FormatError
from agentc_backends.data.chat.rows import MaskRules, Side, encode_rows, warn_of_forgotten
from agentc_backends.data.chat.tokens import Encoder, load_encoder
from agentc_backends.data.models.lora_targets import require_lora_targets
from agentc_backends.job_device import job_device
from agentc_backends.trainers.common.attention import require_attention
from agentc_backends.trainers.common.deadline import Deadline
from agentc_backends.trainers.common.endings import TrainingFailedError
from agentc_backends.trainers.common.program import record_facts, run_trainer
from agentc_backends.trainers.common.rows import prompts_of, read_choice, rows_to_imitate
from agentc_backends.trainers.common.scoring import sample_of
from agentc_backends.trainers.xtuner import training
from agentc_backends.trainers.xtuner.config_file import MachineSettings, deepspeed, render
from agentc_backends.trainers.xtuner.conversion import export, into_transformers_4
from agentc_backends.trainers.xtuner.packing import packed_sequences
from agentc_backends.trainers.xtuner.schedule import length_of

_PACKAGES = ("torch", "transformers", "xtuner", "mmengine", "peft")
"""Those whose versions are facts."""
_EARLIER = {"attention": "sdpa", "offload": False, "save_dtype": "auto"}
"""What trainings had before plans named it."""


def train(job: Job) -> None:
    """Fine-tune the model of the job and write its checkpoint. Raises RowsError, FormatError,
    TrainingFailedError, OutOfTimeError."""
    config = job.config
    settings = {**_EARLIER, **config["settings"]}
    mask = config["mask"]
    chosen, left_out = rows_to_imitate(job, read_choice(config))
    config.assert_all_read()
    require_attention(settings["attention"])
    base, model = job.input("model"), job.work / "model"
    into_transformers_4(base, model)
    require_lora_targets(model, (settings["lora"] or {}).get("targets") or ())
    encoder = _encoder(model)
    sides, counts = encode_rows(encoder, chosen, MaskRules(**mask))
    warn_of_forgotten(job, counts)
    packing = settings["pack_to_max_length"]
    if packing:
        random.Random(f"{settings['seed']}/pack").shuffle(sides)
        left_out["sequences"] = len(packed_sequences(sides, settings["max_length"]))
    rows = left_out["sequences"] if packing else len(sides)
    write_rows(sides, job.work / "rows")
    sample = sample_of(encoder, sides, prompts_of(chosen))
    del sides  # the training process reads them from the disk

    processes = int(job.placement.get("processes") or 1)
    gpu = job_device(job).type == "cuda"
    length = length_of(settings, rows, processes)
    # Iterations count what one process does, so checkpoints serve the same number of processes.
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
        except TrainingFailedError as error:
            raise TrainingFailedError(_diverged(job) or str(error)) from None
        newest = training.newest_checkpoint(work_dir)
        if (job.work / training.STOPPED).exists():
            step = training.iterations_of(newest) // settings["accumulative_counts"]
            Deadline(job).stop(step, length.steps)
    if newest is None or training.iterations_of(newest) < length.iterations:
        raise TrainingFailedError(
            f"XTuner ended after {newest.name if newest else 'no checkpoint'}, not after "
            f"{length.iterations} iterations"
        )
    export(newest, model, base, job.out, settings["lora"], settings["save_dtype"], sample)
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
    path = job.work / training.DIVERGED
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    raise SystemExit(run_trainer("xtuner.sft", train, module=None))
