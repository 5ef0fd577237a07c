"""Estimates as text for people and as JSON for programs; the amounts under `budget:` against
them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentc.cost.estimate import Estimate
from agentc.cost.parameters import ASSUMED
from agentc.cost.quantities import Quantity, sum_in_step
from agentc.cost.summary import Band, Summary
from agentc.diagnostics.diagnostic import Diagnostic
from agentc.ir.module import Budget
from agentc.kinds.field import Json
from agentc.plan.stage_names import FEWEST_CELLS, of_all_cells
from agentc.text import (
    band,
    counted,
    fitted,
    format_count,
    format_duration,
    format_size,
    some,
    wrapped_lines,
)

_NOTHING: Mapping[str, str] = {}
_FOLD = 40
"""Rows from which rounds are shown as one row, as cells of a sweep always are."""
_LOADED = 1.25
"""The current load is printed where it makes a run this many times as long as idle."""
_HEAD = ("stage", "jobs", "time", "p10 to p90", "GPU-hours", "tokens", "disk", "memory",
         "based on")  # fmt: skip
_LEFT_OUT = ("tokens", "disk", "jobs", "p10 to p90", "GPU-hours")
"""Columns that a narrow terminal does not show, in this order; `--format json` has all."""


def cost_table(
    estimates: Mapping[str, Estimate],
    summary: Summary,
    *,
    everything: bool = False,
    memory: Mapping[str, str] = _NOTHING,
    width: int | None = None,
) -> str:
    """The table by stage with totals, in the `width` of a terminal. Stages that the store has
    are in it with `everything`. `memory` says by job what each GPU, or the machine, has to hold; a
    row shows the first."""
    shown = [e for e in estimates.values() if everything or e.state == "run"]
    cached = sum(e.state == "cached" for e in estimates.values())
    rows = _rows(_groups(shown, fold=not everything), memory)
    lines = _aligned([_HEAD, *rows], width) if rows else []
    lines += ["", *wrapped_lines(total_lines(summary, cached), width)]
    return "\n".join(lines) + "\n"


def total_lines(summary: Summary, cached: int) -> list[str]:
    """What remains, in a few lines."""
    spent = f" (they took {format_duration(summary.spent_seconds)})" if cached else ""
    there = f"{cached} of the results are in the store already{spent}" if cached else ""
    if not summary.jobs:
        return [there, "nothing is left to run"] if there else ["nothing is left to run"]
    on = "job" if summary.place.queued else "core"
    lines = [
        f"in all {_where(summary)}, {counted(summary.cores, on)} at once (p50, and p10 to p90):",
        f"  wall time   {_band_time(summary.wall)}",
        f"  job time    {_band_time(summary.work)}",
    ]
    if _is_loaded(summary):
        lines.insert(2, f"  now         {format_duration(summary.loaded):<10} at the current load")
    if summary.gpu_hours.median:
        shared = summary.shared_gpu_hours
        held = f"  {format_count(shared)} of them shared servers'" if shared else ""
        lines.append(f"  GPU-hours   {_band_count(summary.gpu_hours)}{held}")
    if summary.tokens.median:
        lines.append(f"  tokens      {_band_count(summary.tokens)}")
    if summary.asked.median:
        asked = _band_count(summary.asked)
        lines.append(f"  asked       {asked}  tokens of models that environments ask")
    lines.append(f"  disk        {_band_bytes(summary.disk)}{_saved(summary)}")
    if summary.unknown:
        lines.append(f"  {_unknown(summary)}")
    lines += [f"  {line}" for line in summary.misfits]
    chain = " > ".join(_shortened(summary.path))
    lines.append(
        f"longest chain: {format_duration(summary.path_seconds)}, however many {on}s: {chain}"
    )
    return [*lines, *([there] if there else [])]


def short_cost(estimate: Estimate) -> str:
    """One job's cost in a few words, for a column of the plan: `about 3 min`."""
    if estimate.state == "cached":
        return f"took {format_duration(estimate.seconds.median)}"
    gpus = f", {format_count(estimate.gpu_hours.median)} GPU-h" if estimate.gpus else ""
    return f"about {format_duration(estimate.seconds.median)}{gpus}"


def cost_column(estimates: Mapping[str, Estimate]) -> dict[str, str]:
    """`short_cost` of the jobs that would run, by id; nothing of the others."""
    return {name: short_cost(each) for name, each in estimates.items() if each.state == "run"}


def summary_lines(summary: Summary) -> list[str]:
    """The whole in two lines: `about 90 s on an idle machine; about 12 min at the current load`,
    and `60 s to 3 min with -j 2, 1.2M tokens, 9 MB of disk`."""
    if not summary.jobs:
        return ["nothing is left to run"]
    first = f"about {format_duration(summary.wall.median)} {_where(summary)}"
    if _is_loaded(summary):
        first += f"; about {format_duration(summary.loaded)} at the current load"
    parts = [f"{_time_range(summary.wall)} with -j {summary.cores}".lstrip()]
    if summary.gpu_hours.median:
        parts.append(f"{format_count(summary.gpu_hours.median)} GPU-hours")
    if summary.tokens.median:
        parts.append(f"{format_count(summary.tokens.median)} tokens")
    parts.append(f"{format_size(summary.disk.median)} of disk")
    assumed = [_unknown(summary)] if summary.unknown else []
    return [first, ", ".join(parts), *assumed, *summary.misfits]


def summary_sentence(summary: Summary) -> str:
    """The same in one line."""
    return "; ".join(summary_lines(summary))


def _where(summary: Summary) -> str:
    """What the time is for."""
    place = summary.place
    if place.queued:
        return "without the time in the queue"
    if not place.here:
        return f"on {place.name}"
    if not summary.gpus:
        return "on an idle machine"
    return f"on an idle machine with {summary.gpus} x {' and '.join(summary.cards)}"


def _is_loaded(summary: Summary) -> bool:
    return summary.loaded > _LOADED * summary.wall.median


def _saved(summary: Summary) -> str:
    if not summary.checkpoints:
        return ""
    return f"  {format_size(summary.checkpoints)} of it checkpoints of {summary.saver}"


def _unknown(summary: Summary) -> str:
    """That the sums rest on an assumption about a model."""
    billions = ASSUMED.median / 1e9
    return f"size of {some(summary.unknown)} unknown: {billions:g} billion weights are assumed"


def estimate_document(estimates: Mapping[str, Estimate], summary: Summary) -> dict[str, Json]:
    """The same as JSON: per job and in all; each amount as [p10, p50, p90]."""
    return {
        "jobs": [
            {
                "id": each.id,
                "stage": each.stage,
                "kind": each.kind,
                "object": each.object,
                "state": each.state,
                **estimate_entry(each),
            }
            for each in estimates.values()
        ],
        "total": total_entry(summary),
    }


def estimate_entry(estimate: Estimate) -> dict[str, Json]:
    """The amounts of one job, and what they rest on."""
    return {
        "seconds": _quantiles(estimate.seconds),
        "gpu_hours": _quantiles(estimate.gpu_hours),
        "tokens": _quantiles(estimate.tokens),
        "asked_tokens": _quantiles(estimate.asked),
        "disk_bytes": _quantiles(estimate.disk),
        "checkpoint_bytes": float(f"{estimate.checkpoints:.6g}"),
        "basis": estimate.basis,
        "like": estimate.like,
    }


def total_entry(summary: Summary) -> dict[str, Json]:
    """What remains."""
    return {
        "jobs": summary.jobs,
        "on": summary.place.name,
        "cores": summary.cores,
        "wall_s": _quantiles(summary.wall),
        "wall_at_load_s": float(f"{summary.loaded:.6g}"),
        "job_s": _quantiles(summary.work),
        "gpu_hours": _quantiles(summary.gpu_hours),
        "shared_gpu_hours": round(summary.shared_gpu_hours, 3),
        "tokens": _quantiles(summary.tokens),
        "asked_tokens": _quantiles(summary.asked),
        "disk_bytes": _quantiles(summary.disk),
        "checkpoint_bytes": float(f"{summary.checkpoints:.6g}"),
        **({"models_of_unknown_size": list(summary.unknown)} if summary.unknown else {}),
        **({"does_not_fit": list(summary.misfits)} if summary.misfits else {}),
        "longest_chain": list(summary.path),
        "longest_chain_s": round(summary.path_seconds, 3),
    }


def _groups(estimates: Iterable[Estimate], fold: bool) -> dict[str, list[Estimate]]:
    groups: dict[str, list[Estimate]] = {}
    for each in estimates:
        groups.setdefault(each.stage, []).append(each)
    if not fold:
        return groups
    cells = Counter(map(of_all_cells, groups))
    alike: dict[str, list[Estimate]] = {}
    for stage, members in groups.items():
        name = of_all_cells(stage)
        alike.setdefault(name if cells[name] >= FEWEST_CELLS else stage, []).extend(members)
    if len(alike) <= _FOLD:
        return alike
    folded: dict[str, list[Estimate]] = {}
    for stage, members in groups.items():
        name = re.sub(r"\.\d+\.", ".*.", of_all_cells(stage))
        folded.setdefault(name, []).extend(members)
    if len(folded) <= _FOLD:
        return folded
    kinds: dict[str, list[Estimate]] = {}
    for members in groups.values():
        for each in members:
            kinds.setdefault(f"all of kind {each.kind}", []).append(each)
    return kinds


def _rows(
    groups: Mapping[str, Sequence[Estimate]], memory: Mapping[str, str]
) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    places = {name: place for place, name in enumerate(memory)}
    for stage, members in groups.items():
        # Two stages may ask for one result; it costs once.
        jobs = list({each.object: each for each in members}.values())
        seconds = sum_in_step(each.seconds for each in jobs)
        gpu_hours = sum(each.gpu_hours.median for each in jobs)
        tokens = sum(each.tokens.median for each in jobs)
        held = [each.id for each in members if memory.get(each.id)]
        rows.append(
            (
                stage,
                str(len(jobs)),
                format_duration(seconds.median),
                band(format_duration(seconds.low), format_duration(seconds.high)),
                format_count(gpu_hours) if gpu_hours else "",
                format_count(tokens) if tokens else "",
                format_size(sum(each.disk.median for each in jobs)),
                memory[min(held, key=places.__getitem__)] if held else "",
                _basis(jobs),
            )
        )
    return rows


def _basis(jobs: Sequence[Estimate]) -> str:
    """Of the job that takes longest, since it decides."""
    main = max(jobs, key=lambda each: each.seconds.median)
    return main.basis


def _aligned(rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    filled = [column for column in range(len(_HEAD)) if any(row[column] for row in rows[1:])]
    last = len(filled) - (1 if len(_HEAD) - 1 in filled else 0)
    drop = [filled.index(_HEAD.index(name)) for name in _LEFT_OUT if _HEAD.index(name) in filled]
    part = [[row[n] for n in filled] for row in rows]
    return fitted(part, width, right=range(1, last), drop=drop)


def _shortened(path: Sequence[str]) -> list[str]:
    return list(path) if len(path) <= 9 else [*path[:4], f"({len(path) - 8} more)", *path[-4:]]


def _band_time(times: Band) -> str:
    return f"{format_duration(times.median):<10} {_time_range(times)}".rstrip()


def _time_range(times: Band) -> str:
    return band(format_duration(times.low), format_duration(times.high))


def _band_count(counts: Band) -> str:
    ends = band(format_count(counts.low), format_count(counts.high))
    return f"{format_count(counts.median):<10} {ends}".rstrip()


def _band_bytes(sizes: Band) -> str:
    ends = band(format_size(sizes.low), format_size(sizes.high))
    return f"{format_size(sizes.median):<10} {ends}".rstrip()


def _quantiles(of: Quantity | Band) -> list[Json]:
    return [float(f"{x:.6g}") for x in (of.low, of.median, of.high)]


# budget: compares an estimate with the amounts under `budget:`, and says what weighs most.

_BIGGEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """One bounded amount, in the units that people read: the estimate's band, the limit, and how
    an amount of it is written."""

    key: str
    band: Band
    limit: float
    show: Callable[[float], str]
    of_job: Callable[[Estimate], float]


def budget_lines(budget: Budget, summary: Summary) -> list[str]:
    """One line for each bounded amount: `budget: 3.4 of 10 GPU-hours (p50)`."""
    lines = []
    for amount in _amounts(budget, summary):
        found = amount.band.at(budget.quantile)
        verdict = "over" if found > amount.limit else "within"
        lines.append(
            f"budget of {amount.show(amount.limit)}: {verdict}, at {amount.show(found)} "
            f"({budget.quantile})"
        )
    return lines


def over_budget(
    budget: Budget, summary: Summary, estimates: Mapping[str, Estimate]
) -> tuple[Diagnostic, ...]:
    """An error for each amount that the remaining work exceeds."""
    return tuple(
        _diagnostic(budget, amount, estimates.values())
        for amount in _amounts(budget, summary)
        if amount.band.at(budget.quantile) > amount.limit
    )


def _amounts(budget: Budget, summary: Summary) -> list[Amount]:
    known: dict[str, tuple[Band, float, Callable[[float], str], Callable[[Estimate], float]]] = {
        "wall_hours": (summary.wall, 3600, format_duration, lambda job: job.seconds.median),
        "gpu_hours": (summary.gpu_hours, 1, _gpu_hours, lambda job: job.gpu_hours.median),
        "tokens": (summary.tokens, 1, _tokens, lambda job: job.tokens.median),
        "disk_gb": (summary.disk, 1e9, format_size, lambda job: job.disk.median),
    }
    return [
        Amount(key=key, band=known[key][0], limit=limit * known[key][1], show=known[key][2],
               of_job=known[key][3])
        for key, limit in budget.limits().items()
    ]  # fmt: skip


def _diagnostic(budget: Budget, amount: Amount, estimates: Iterable[Estimate]) -> Diagnostic:
    found = amount.show(amount.band.at(budget.quantile))
    jobs = {job.object: job for job in estimates if job.state == "run"}.values()
    heavy = sorted(jobs, key=amount.of_job, reverse=True)[:_BIGGEST]
    biggest = ", ".join(
        f"{job.id} {amount.show(amount.of_job(job))} ({job.basis})"
        for job in heavy
        if amount.of_job(job) > 0
    )
    ends = band(amount.show(amount.band.low), amount.show(amount.band.high))
    return Diagnostic(
        code="AGC730",
        message=f"what is left to run is estimated at {found}, over the budget of "
        f"{amount.show(amount.limit)}",
        span=budget.spans.get(amount.key),
        notes=(
            f"{budget.quantile} of the estimate" + (f"; from p10 to p90: {ends}" if ends else ""),
            f"most: {biggest}",
        ),
        fix=f"raise `{amount.key}`, run less, or say `agentc run --over-budget`",
    )


def _gpu_hours(amount: float) -> str:
    return f"{format_count(amount)} GPU-hours"


def _tokens(amount: float) -> str:
    return f"{format_count(amount)} tokens"
