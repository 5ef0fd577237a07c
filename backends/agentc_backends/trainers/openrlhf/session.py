"""What both trainers do around OpenRLHF's command: read the data, lay out the training, resume,
start the command in this process with its data set and trainer replaced, publish, record facts."""

from __future__ import annotations

import importlib
import os
import runpy
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias

from agentc.program.job import Job, JobConfig
from agentc_backends.data.chat.rows import MaskRules, RowCounts, Side
from agentc_backends.data.models.lora_targets import require_lora_targets
from agentc_backends.data.models.scored_rows import ScoredRows, write_scored_rows
from agentc_backends.trainers.common.attention import require_attention
from agentc_backends.trainers.common.processes import agreed, first_process
from agentc_backends.trainers.common.program import record_facts
from agentc_backends.trainers.common.scoring import ScoringSample, score_rows
from agentc_backends.trainers.openrlhf.checkpoint import publish, without_code
from agentc_backends.trainers.openrlhf.machine import join_group, prepare_machine
from agentc_backends.trainers.openrlhf.resume import FOLDER, settle_checkpoints
from agentc_backends.trainers.openrlhf.schedule import Schedule, lay_out

_PACKAGES = ("torch", "transformers", "openrlhf", "deepspeed", "peft", "accelerate")
"""Those whose versions are facts."""

_COMPUTED_IN = "bfloat16"
"""The one numeric type that the backend takes."""

_OPERATORS, _TRAINED = "operators", "trained"
"""Folders of the job's work folder."""

MakeData: TypeAlias = "Callable[[Schedule, Any], Any]"
"""(schedule, tokenizer) -> the data set that takes the place of OpenRLHF's."""


class _Rows(list[None]):
    """What OpenRLHF hands from its loader of files to its data set; the rows are here already."""

    def select(self, indices: Any) -> _Rows:
        return self


@dataclass(frozen=True, slots=True)
class TrainerSettings:
    """What the config of both jobs holds; see `backend.py`. `mask` says which tokens count."""

    flags: tuple[str, ...]
    epochs: float
    max_steps: int | None
    save_every: int | None
    save_dtype: str
    mask: MaskRules

    def value(self, flag: str) -> int:
        """The number that a flag is set to."""
        return int(self.word(flag))

    def word(self, flag: str) -> str:
        """What follows a flag."""
        return self.flags[self.flags.index(flag) + 1]

    def words(self, flag: str) -> tuple[str, ...]:
        """All words that follow a flag, none where it is not set."""
        behind = self.flags[self.flags.index(flag) + 1 :] if flag in self.flags else ()
        return tuple(takewhile(lambda word: not word.startswith("-"), behind))


def read_settings(config: JobConfig) -> TrainerSettings:
    """The settings of a job's config."""
    return TrainerSettings(
        flags=tuple(config["flags"]),
        epochs=config["epochs"],
        max_steps=config["max_steps"],
        save_every=config["save_every"],
        save_dtype=config.get("save_dtype", "auto"),
        mask=MaskRules(**config["mask"]),
    )


def train_with(
    job: Job,
    command: str,
    settings: TrainerSettings,
    lengths: Sequence[int],
    tokens: Sequence[int],
    counts: RowCounts,
    make_data: MakeData,
    sample: ScoringSample,
    **facts: Any,
) -> None:
    """Train on rows of these lengths, and of so many tokens in all (those of both sides of a pair),
    and leave a checkpoint in `job.out`, with scores of `sample`. `command` is "sft" or "dpo".
    Raises TrainingDivergedError, OutOfTimeError."""
    import torch.distributed as dist

    schedule = lay_out(
        lengths,
        global_batch=settings.value("--train.batch_size"),
        epochs=settings.epochs,
        max_steps=settings.max_steps,
        seed=settings.value("--train.seed"),
    )
    require_attention(settings.word("--ds.attn_implementation"))
    require_lora_targets(job.input("model"), settings.words("--ds.lora.target_modules"))
    # Where DeepSpeed compiles operators; a shared folder's forgotten lock would stop every run.
    os.environ["TORCH_EXTENSIONS_DIR"] = str(job.work / _OPERATORS)
    prepare_machine()
    join_group()
    begun = agreed(partial(_settle, job.work))
    trained = job.work / _TRAINED
    base = job.input("model")
    flags = [*settings.flags, *_models(job, base), "--ckpt.output_dir", str(trained)]
    flags += ["--ckpt.path", str(job.work / FOLDER), "--ckpt.max_num", "2"]
    # When to save is `reporter`'s to say.
    flags += ["--ckpt.save_steps", str(len(schedule.held))]
    flags += ["--ckpt.load_enable"] if begun else []

    from agentc_backends.trainers.openrlhf.reporting import StepReporter

    reporter = StepReporter(
        job,
        schedule.tokens(tokens),
        begun=begun,
        log_every=settings.value("--logger.logging_steps"),
        save_every=settings.save_every,
    )
    scored: list[ScoredRows] = []

    def finished(log_probs: Callable[[Side], list[float]]) -> None:
        scored.append(score_rows(sample, _COMPUTED_IN, log_probs))

    _replace(command, partial(make_data, schedule), reporter, finished)
    _run(f"openrlhf.cli.train_{command}", flags)
    if first_process():
        publish(trained, base, job.out, settings.save_dtype)
        write_scored_rows(job.out, scored[0])
        record_facts(job, counts, len(schedule.held), _PACKAGES, **facts)
    dist.barrier()


def _settle(work: Path) -> int:
    """The step to continue after, 0 for none. Forgets what an attempt before this one began: a
    lock left by one that was killed while it compiled would be waited for without end."""
    for name in (_OPERATORS, _TRAINED):
        shutil.rmtree(work / name, ignore_errors=True)
    return settle_checkpoints(work)


def _models(job: Job, base: Path) -> list[str]:
    """Flags that name the models, each in a view of this process's own."""
    views = job.work / "models" / str(_rank())
    flags = ["--model.model_name_or_path", str(without_code(base, views / "policy"))]
    references = [path for path in job.inputs("reference") if path != base]
    if references:
        view = without_code(references[0], views / "reference")
        flags += ["--ref.model_name_or_path", str(view)]
    return flags


def _rank() -> int:
    import torch.distributed as dist

    return int(dist.get_rank())


def _replace(
    command: str, make_data: Callable[[Any], Any], reporter: Any, finished: Callable[..., None]
) -> None:
    """Put our data set, row order and reporting trainer where OpenRLHF's command will look."""
    from tqdm import tqdm

    from agentc_backends.trainers.openrlhf import trainers

    def data_set(rows: Any, tokenizer: Any, *_: Any, **__: Any) -> Any:
        return make_data(tokenizer)

    def no_bar(rows: Any, **options: Any) -> Any:
        # OpenRLHF draws bars also where the environment turns them off.
        return tqdm(rows, **{**options, "disable": True})

    name, trainer, replacement = {
        "sft": ("SFTDataset", "SFTTrainer", trainers.RowTrainer),
        "dpo": ("RewardDataset", "DPOTrainer", trainers.PairTrainer),
    }[command]
    made = partial(replacement, reporter=reporter, finished=finished)
    for module, attribute, value in (
        ("openrlhf.datasets", name, data_set),
        ("openrlhf.datasets.utils", "blending_datasets", lambda *_, **__: _Rows()),
        (f"openrlhf.trainer.{command}_trainer", trainer, made),
        (f"openrlhf.trainer.{command}_trainer", "tqdm", no_bar),
        ("openrlhf.utils.deepspeed", "DeepspeedStrategy", trainers.OrderedStrategy),
    ):
        setattr(importlib.import_module(module), attribute, value)


def _run(module: str, flags: Sequence[str]) -> None:
    """Run a command-line module as `python -m module flags` would, in this process."""
    sys.argv = [module, *flags]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
