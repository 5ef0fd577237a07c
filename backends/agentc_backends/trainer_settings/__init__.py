"""What every trainer's backend reads alike: how a step's rows are shared out, the schedule of the
learning rate, and which tokens are trained. Used while lowering; imports nothing heavy.
"""

from __future__ import annotations

from agentc.backend_api import StageView
from agentc.kinds.field import Json


def micro_batches(view: StageView, default: int | None) -> tuple[int, int]:
    """(rows that a process handles at once, such micro-batches in a step).

    `default` is the size where the spec is silent, None for all rows of a process. Refuses what
    does not divide, which some trainers would round down in silence; the answer is (1, 1) then.
    """
    whole = view.integer("global_batch")
    processes = view.integer("processes")
    given = view.get("micro_batch")
    if whole % processes:
        view.refuse(
            "processes",
            f"{processes} processes cannot share a global_batch of {whole} equally",
            fix=f"set processes to a divisor of {whole}: {_divisors(whole)}",
        )
        return 1, 1
    local = whole // processes
    micro = given if isinstance(given, int) else default or local
    if local % micro:
        view.refuse(
            "micro_batch",
            f"{micro} does not divide the {local} rows that each process takes of a step "
            f"(global_batch {whole} / processes {processes})",
            fix=f"set micro_batch to a divisor of {local}: {_divisors(local)}",
        )
        return 1, 1
    return micro, local // micro


def warmed_schedule(view: StageView) -> tuple[str, float]:
    """(scheduler, share of the steps that warm up); refuses what no trainer would heed."""
    scheduler = view.text("scheduler")
    ratio = view.number("warmup_ratio")
    if ratio and scheduler == "constant":
        view.refuse(
            "warmup_ratio",
            "the scheduler `constant` has no warm-up",
            fix="set scheduler: constant_with_warmup",
        )
    if ratio >= 1:
        # From 1 on, transformers reads the number as a count of steps.
        view.refuse("warmup_ratio", "must be below 1", fix="set a share such as 0.1")
    return scheduler, ratio


def token_mask(view: StageView, loss_on: str) -> dict[str, Json]:
    """Which tokens are trained, and what becomes of rows that are too long."""
    return {
        "loss_on": loss_on,
        "max_length": view.integer("max_length"),
        "truncation": view.text("truncation"),
    }


def _divisors(number: int) -> str:
    return ", ".join(str(each) for each in range(1, number + 1) if number % each == 0)
