"""One training by OpenRLHF's command, in this process: the schedule of its rows, resuming, the
command with its data set and trainer replaced, the report of each step, and the checkpoint.

OpenRLHF drops the last rows of an epoch, how many depends on the micro-batch size and the number of
processes. Here an epoch is a permutation by (seed, epoch) whose last step is smaller and filled up
with empty rows, so that the steps are the same on every machine.
"""

from __future__ import annotations

import importlib
import math
import os
import runpy
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, takewhile
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from agentc.kinds.training import TrainingLength
from agentc.program.job import Job
from agentc_backends.data.chat.rows import MaskRules, RowCounts, Side
from agentc_backends.data.models.checkpoint import require_lora_targets
from agentc_backends.data.models.scored_rows import ScoredRows, write_scored_rows
from agentc_backends.trainers.common.checkpoints import Deadline, mark_complete
from agentc_backends.trainers.common.checks import (
    require_attention,
    require_finite,
    skipped_update_error,
)
from agentc_backends.trainers.common.processes import decide_on_first, first_process
from agentc_backends.trainers.common.program import record_facts
from agentc_backends.trainers.common.rows import StepSampler
from agentc_backends.trainers.common.scoring import ScoringSample, score_rows
from agentc_backends.trainers.common.step_log import StepLog
from agentc_backends.trainers.openrlhf.checkpoints import (
    FOLDER,
    TAG,
    keep_newest_checkpoint,
    publish,
    without_code,
)
from agentc_backends.trainers.openrlhf.machine import join_group, prepare_machine


@dataclass(frozen=True, slots=True)
class Schedule:
    """The whole training as one pass: `places[i]` is the index of a row, or None for an empty one;
    `global_batch` places make a step. `held[s]` rows of step s are not empty."""

    places: tuple[int | None, ...]
    held: tuple[int, ...]
    global_batch: int

    def step_of(self, place: int) -> int:
        """The step in which a place is trained."""
        return place // self.global_batch

    def tokens(self, row_tokens: Sequence[int]) -> list[int]:
        """The tokens of each step; `row_tokens` are those of each row."""
        totals = [0] * len(self.held)
        for place, row in enumerate(self.places):
            if row is not None:
                totals[self.step_of(place)] += row_tokens[row]
        return totals


def schedule_rows(
    lengths: Sequence[int], *, global_batch: int, epochs: float, max_steps: int | None, seed: int
) -> Schedule:
    """The schedule of rows with these lengths, in tokens. Its steps are ceil(epochs * steps of an
    epoch), or `max_steps`, which may exceed the epochs."""
    steps_per_epoch = math.ceil(len(lengths) / global_batch)
    # Rounded first: 0.1 * 30 is a bit more than 3.
    steps = max_steps or math.ceil(round(epochs * steps_per_epoch, 6))
    sampler = StepSampler(lengths, global_batch=global_batch, multiple=1, seed=seed)
    places: list[int | None] = []
    held: list[int] = []
    for epoch in count():
        sampler.set_epoch(epoch)
        rows = list(sampler)
        for start in range(0, len(rows), global_batch):
            if len(held) == steps:
                return Schedule(tuple(places), tuple(held), global_batch)
            step = rows[start : start + global_batch]
            held.append(len(step))
            places += [*step, *[None] * (global_batch - len(step))]
    raise AssertionError("epochs never end")


class StepReporter:
    """Writes logs/steps.jsonl and the progress, stops a run whose numbers are no longer finite, and
    says when to save and stop. Only the first process writes. A line's numbers are means over the
    steps since the line before, except the learning rate and the gradient's norm, which are its own
    step's. `tokens` are those of each step's rows; an earlier attempt made `done` steps."""

    def __init__(
        self,
        job: Job,
        tokens: Sequence[int],
        *,
        done: int,
        log_every: int,
        save_every: int | None,
    ) -> None:
        self.job = job
        self.total = len(tokens)
        self._tokens = tokens
        self._log_every = log_every
        self._save_every = save_every
        self._log = StepLog(job, done)
        self._since: list[dict[str, float]] = []
        self._deadline = Deadline(job)

    def last(self, number: int) -> bool:
        """Whether no step follows."""
        return number >= self.total

    def step(
        self, number: int, learning_rate: float, numbers: dict[str, float], *, updated: bool
    ) -> None:
        """Report a step: its numbers, means over all processes, and whether it changed the weights.
        Raises TrainingDivergedError."""
        if not updated:
            raise skipped_update_error(number, numbers["loss"])
        require_finite(number, numbers)
        self._since.append(numbers)
        if number > 1 and number % self._log_every:
            return
        steps, self._since = self._since, []
        means = {name: sum(step[name] for step in steps) / len(steps) for name in numbers}
        self._log.write(
            number,
            self.total,
            lr=learning_rate,
            tokens=sum(self._tokens[:number]),
            numbers={**means, "grad_norm": numbers["grad_norm"]},
        )

    def must_stop(self, number: int, model: Any) -> bool:
        """Whether to save a checkpoint after this step and stop, because the time limit is near. To
        be called at the end of each step."""
        return self._deadline.is_near(model) and not self.last(number)

    def save_due(self, number: int, model: Any) -> bool:
        """Whether to save a checkpoint after this step; not after the last one, which the finished
        model follows. To be called after `must_stop`."""
        return not self.last(number) and self._deadline.save_due(model, number, self._save_every)

    def saved(self, number: int) -> None:
        """Record that the checkpoint after a step is written."""
        if first_process():
            mark_complete(self.job.work / FOLDER / f"{TAG}{number}")
        self._deadline.saved()

    def stop(self, number: int) -> NoReturn:
        """End the training after a step. Raises OutOfTimeError on every process."""
        self._deadline.stop(number, self.total)


_PACKAGES = ("torch", "transformers", "openrlhf", "deepspeed", "peft", "accelerate")
"""The packages whose versions are facts."""

_COMPUTED_IN = "bfloat16"
"""The only numeric type that the backend supports."""

_OPERATORS, _TRAINED = "operators", "trained"
"""Folders of the job's work folder."""

MakeData: TypeAlias = "Callable[[Schedule, Any], Any]"
"""(schedule, tokenizer) -> the data set that replaces OpenRLHF's."""


class _Rows(list[None]):
    """What OpenRLHF's file loader passes to its data set, which has its rows already."""

    def select(self, indices: Any) -> _Rows:
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerSettings(TrainingLength):
    """The config of both jobs; see `backend.py`. `mask` selects the tokens that count."""

    flags: tuple[str, ...]
    mask: MaskRules

    def value(self, flag: str) -> int:
        """The number that a flag is set to."""
        return int(self.word(flag))

    def word(self, flag: str) -> str:
        """The word after a flag."""
        return self.flags[self.flags.index(flag) + 1]

    def words(self, flag: str) -> tuple[str, ...]:
        """All words after a flag, none where it is not set."""
        following = self.flags[self.flags.index(flag) + 1 :] if flag in self.flags else ()
        return tuple(takewhile(lambda word: not word.startswith("-"), following))


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
    """Train and write a checkpoint into `job.out`, with scores of `sample`. Rows are ordered by
    `lengths`; `tokens` are those of a row in all, or of both sides of a pair. `command` is "sft" or
    "dpo". Raises TrainingDivergedError, OutOfTimeError."""
    import torch.distributed as dist

    schedule = schedule_rows(
        lengths,
        global_batch=settings.value("--train.batch_size"),
        epochs=settings.epochs,
        max_steps=settings.max_steps,
        seed=settings.value("--train.seed"),
    )
    require_attention(settings.word("--ds.attn_implementation"))
    require_lora_targets(job.input("model"), settings.words("--ds.lora.target_modules"))
    # Where DeepSpeed compiles operators: a stale lock in a shared folder would stop every run.
    os.environ["TORCH_EXTENSIONS_DIR"] = str(job.work / _OPERATORS)
    prepare_machine()
    join_group()
    done = decide_on_first(partial(_clear_work, job.work))
    trained = job.work / _TRAINED
    base = job.input("model")
    flags = [*settings.flags, *_models(job, base), "--ckpt.output_dir", str(trained)]
    flags += ["--ckpt.path", str(job.work / FOLDER), "--ckpt.max_num", "2"]
    # `reporter` decides when to save.
    flags += ["--ckpt.save_steps", str(len(schedule.held))]
    flags += ["--ckpt.load_enable"] if done else []

    reporter = StepReporter(
        job,
        schedule.tokens(tokens),
        done=done,
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


def _clear_work(work: Path) -> int:
    """The step to continue after, 0 for none. Deletes what an earlier attempt has left: the lock of
    one that was killed while it compiled would be waited for without end."""
    for name in (_OPERATORS, _TRAINED):
        shutil.rmtree(work / name, ignore_errors=True)
    return keep_newest_checkpoint(work)


def _models(job: Job, base: Path) -> list[str]:
    """Flags that name the models, each in a folder of links of this process."""
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
    """Replace what OpenRLHF's command will import: data set, row order and trainer."""
    from tqdm import tqdm

    from agentc_backends.trainers.openrlhf import trainers

    def data_set(rows: Any, tokenizer: Any, *_: Any, **__: Any) -> Any:
        return make_data(tokenizer)

    def no_bar(rows: Any, **options: Any) -> Any:
        # OpenRLHF draws progress bars even where the environment turns them off.
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
