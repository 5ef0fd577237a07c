"""finish: what the plan says about the experiment as a whole.

Requires: jobs with keys.
Ensures: `targets` are the jobs that no other job reads, and `experiment` holds what the report
and the status line show: description, paper, discrepancies, the stages of each round, and the rules
by which rounds stop, which no job is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from agentc.ir.module import Module
from agentc.kinds.field import Json
from agentc.passes.unit import PassContext, Unit


def finish(unit: Unit, context: PassContext) -> Unit:
    """Add targets and the experiment's metadata."""
    plan, module = unit.plan, unit.module
    if plan is None or module is None:
        return unit
    read = {parent for job in plan.jobs for parent in job.parents()}
    targets = tuple(job.id for job in plan.jobs if job.id not in read)
    experiment = {**experiment_facts(module), **stopping_facts(module)}
    return replace(unit, plan=replace(plan, targets=targets, experiment=experiment))


# What people read about an experiment as a whole: by the report, by plan.json, by status.


def experiment_facts(module: Module) -> Mapping[str, Json]:
    """{description, paper, discrepancies, rounds: [{repeat, round, stages}]}; of a sweep also
    `matrix`, the values by param, and `cells`, for each swept stage {base, cell}; the scale where
    one is chosen (an absent key leaves the keys of old reports as they are)."""
    rounds: dict[tuple[str, int], list[Json]] = {}
    for stage in module.stages.values():
        if stage.round is not None:
            repeat = stage.id.split(f".{stage.round}.")[0]
            rounds.setdefault((repeat, stage.round), []).append(stage.id)
    swept: dict[str, Json] = {}
    if module.matrix:
        cells: dict[str, Json] = {
            stage.id: {"base": stage.base, "cell": dict(stage.cell)}
            for stage in module.stages.values()
            if stage.cell
        }
        swept = {"matrix": {axis: list(v) for axis, v in module.matrix.items()}, "cells": cells}
    if module.scale is not None:
        swept["scale"] = module.scale
    return {
        **swept,
        "description": module.description,
        "paper": dict(module.paper),
        "discrepancies": [dict(entry) for entry in module.discrepancies],
        "rounds": [
            {"repeat": repeat, "round": number, "stages": stages}
            for (repeat, number), stages in rounds.items()
        ],
    }


def stopping_facts(module: Module) -> Mapping[str, Json]:
    """{stopping: [{name, most, measures, rule}]} where rounds stop by a rule, for whoever asks the
    store how far they are. Apart from the facts above, which enter the key of a report: an
    experiment that stopped is the one with so many rounds."""
    found: list[Json] = [
        {"name": each.name, "most": each.most, "measures": [*each.measures],
         "rule": asdict(each.rule)}
        for each in module.stopping
    ]  # fmt: skip
    return {"stopping": found} if found else {}
