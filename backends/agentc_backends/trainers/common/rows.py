"""The rows of a training job: which are trained, and in which order.

The order is a permutation of each epoch, divided into optimiser steps. Within a step the longest
rows come first, so that micro-batches hold rows of similar length. That changes no result: losses
are sums over the rows (or tokens) of a step, divided once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from agentc.kinds.training import RowChoice
from agentc.program.artifact_files import PAIRS_FILE, ROWS_FILE, TRAJECTORIES_FILE
from agentc.program.job import Job, read_rows
from agentc_backends.data.chat.formats import NoRowsError, RowsError
from agentc_backends.data.chat.selection import best_of_all, best_of_tasks

Row: TypeAlias = dict[str, Any]


def pairs_to_compare(job: Job) -> list[Row]:
    """The pairs of a preference training. Raises RowsError."""
    return _input_rows(job.inputs("data"), (PAIRS_FILE,))


def rows_to_imitate(job: Job, choice: RowChoice) -> tuple[list[Row], dict[str, Any]]:
    """The rows of a supervised training, and counts of those left out; see `select_rows`. Raises
    RowsError."""
    names = (TRAJECTORIES_FILE, ROWS_FILE, PAIRS_FILE)
    rows = [_imitated(row) for row in _input_rows(job.inputs("data"), names)]
    return select_rows(rows, choice)


def _imitated(row: Row) -> Row:
    """The chosen side of a pair, after the prompt and with its reward, on which the term
    `nll_weight` of a preference training is computed; other rows as they are."""
    if "chosen" not in row:
        return row
    return {
        "id": row["id"],
        "task_id": row["task_id"],
        "messages": [*row["prompt"], *row["chosen"]],
        "prompt_length": len(row["prompt"]),
        "reward": row["chosen_reward"],
        "source": row.get("source", "policy"),
    }


def select_rows(rows: list[Row], choice: RowChoice) -> tuple[list[Row], dict[str, Any]]:
    """The rows to imitate, and counts of those left out: episodes that ended in an infrastructure
    error; with `min_reward`, rows below it or without a reward; then all but the best share, and
    all but the best of each task, where only these are wanted. Raises NoRowsError where none is
    left."""
    min_reward = choice.min_reward
    whole = [row for row in rows if row.get("end") != "error"]
    kept = whole
    if min_reward is not None:
        kept = [row for row in whole if _reaches(row, min_reward)]
    if rows and not kept:
        raise NoRowsError(_why_none(rows, whole, min_reward))
    left_out: dict[str, Any] = {
        "errors_left_out": len(rows) - len(whole),
        "below_min_reward": len(whole) - len(kept),
        **_played(whole, kept, min_reward),
    }
    if choice.keep_best is not None:
        best = best_of_all(kept, choice.keep_best)
        if rows and not best:
            raise NoRowsError(_why_no_share(kept, choice.keep_best))
        left_out["below_best_share"] = len(kept) - len(best)
        kept = best
    if choice.best_per_task is not None:
        best = best_of_tasks(kept, choice.best_per_task)
        left_out["not_best_left_out"] = len(kept) - len(best)
        kept = best
    return kept, left_out


def _played(whole: list[Row], kept: list[Row], min_reward: float | None) -> dict[str, Any]:
    """Facts of the episodes that a policy played, with `min_reward`."""
    played = [row for row in whole if row.get("source") == "policy"]
    if min_reward is None or not played:
        return {}
    rewards = [row["reward"] for row in played if row.get("reward") is not None]
    return {
        "min_reward": min_reward,
        "played": len(played),
        "played_kept": sum(row.get("source") == "policy" for row in kept),
        "played_best": max(rewards, default=None),
    }


def prompts_of(rows: Sequence[Row]) -> list[list[dict[str, str]]]:
    """The messages of each row before its agent's first reply."""
    return [row["messages"][: row["prompt_length"]] for row in rows]


def _reaches(row: Row, min_reward: float) -> bool:
    reward = row.get("reward")
    return reward is not None and reward >= min_reward


def _why_no_share(rows: list[Row], share: float) -> str:
    """Why the best share of the rows is none of them."""
    rewarded = sum(row.get("reward") is not None for row in rows)
    if not rewarded:
        return f"no rows to train on: none of {len(rows)} has a reward for `keep_best` to go by"
    return (
        f"no rows to train on: keep_best {share:g} of {rewarded} trajectories is less than one; "
        "raise it, or sample more"
    )


def _why_none(rows: list[Row], whole: list[Row], min_reward: float | None) -> str:
    """Why not one row is left to imitate, and what to do."""
    failed = len(rows) - len(whole)
    if not whole:
        return (
            "no rows to train on: every trajectory ended in an infrastructure error "
            f"({failed} of {failed}); its row says which in `error`"
        )
    rewards = [row["reward"] for row in whole if row.get("reward") is not None]
    best = f"best: {max(rewards):g}" if rewards else "none has a reward"
    more = f"; {failed} more ended in an infrastructure error" if failed else ""
    of = "the one trajectory does not reach"
    if len(whole) > 1:
        of = f"none of {len(whole)} trajectories reaches"
    return (
        f"no rows to train on: {of} min_reward {min_reward:g} ({best}){more}; lower it, or sample "
        "more"
    )


def _input_rows(directories: list[Path], names: tuple[str, ...]) -> list[Row]:
    """Rows of every directory, in order; each holds one of the files `names`."""
    rows: list[Row] = []
    for directory in directories:
        path = next((directory / n for n in names if (directory / n).exists()), None)
        if path is None:
            raise RowsError(f"an input holds none of {', '.join(names)}")
        rows += read_rows(path)
    return rows


class StepSampler:
    """A sampler for torch's DataLoader: yields row indices.

    `lengths` are in tokens. A step takes `global_batch` rows, the last one of an epoch what is
    left. `multiple` = micro_batch * processes: an epoch's last micro-batches are filled up with
    empty rows (index len(lengths) and on), so that several processes always take the same number
    of equally large micro-batches.
    """

    def __init__(
        self, lengths: Sequence[int], *, global_batch: int, multiple: int, seed: int
    ) -> None:
        self.lengths = lengths
        self.global_batch = global_batch
        self.empty = empty_rows(len(lengths), multiple)
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the permutation; called by the training loop at each epoch's start."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths) + self.empty

    def __iter__(self) -> Iterator[int]:
        for step in _steps(len(self.lengths), self.global_batch, self.seed, self.epoch):
            yield from sorted(step, key=lambda row: (-self.lengths[row], row))
        yield from range(len(self.lengths), len(self))


def permutation(rows: int, seed: int, epoch: int) -> list[int]:
    """The order of the rows in an epoch."""
    order = list(range(rows))
    random.Random(f"{seed}/{epoch}").shuffle(order)
    return order


def step_totals(numbers: Sequence[int], *, global_batch: int, seed: int) -> Iterator[int]:
    """The sum over the rows of each step, without end; `numbers` are those of the rows."""
    for epoch in count():
        for step in _steps(len(numbers), global_batch, seed, epoch):
            yield sum(numbers[row] for row in step)


def _steps(rows: int, global_batch: int, seed: int, epoch: int) -> Iterator[list[int]]:
    """The rows of each step of an epoch."""
    order = permutation(rows, seed, epoch)
    for start in range(0, rows, global_batch):
        yield order[start : start + global_batch]


def empty_rows(rows: int, multiple: int) -> int:
    """How many empty rows make `rows` a multiple of micro_batch * processes; none for 1."""
    return -rows % multiple
