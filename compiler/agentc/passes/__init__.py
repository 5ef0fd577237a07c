"""The compiler's middle end: one tuple of plain functions, each `(Unit, PassContext) -> Unit`.

The front end (`agentc.front`) reads a spec into a Unit with a module; these passes make a plan of
it. Each module of this folder that holds a pass says what it requires and ensures; `AGENTC_DEBUG=1`
verifies the unit after each.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

from agentc.ir.module import verify_module
from agentc.passes.check_settings import check_settings
from agentc.passes.choose_backends import choose_backends
from agentc.passes.finish import finish
from agentc.passes.forecast_memory import forecast_memory
from agentc.passes.infer_artifacts import infer_artifacts
from agentc.passes.lower import assign_keys, lower
from agentc.passes.servers import fuse_servers, share_servers
from agentc.passes.unit import BackendChoice, PassContext, Unit
from agentc.plan.verify import verify_plan

__all__ = ["PASSES", "BackendChoice", "PassContext", "Unit", "run_passes"]

Pass: TypeAlias = Callable[[Unit, PassContext], Unit]

PASSES: tuple[Pass, ...] = (
    infer_artifacts,
    choose_backends,  # tries every candidate, so edges must be known
    check_settings,
    lower,  # the last pass that sees stages; makes no plan when anything is wrong
    assign_keys,
    share_servers,
    fuse_servers,  # joins jobs on servers that none of them shares with others
    forecast_memory,
    finish,
)


def run_passes(unit: Unit, context: PassContext, *, verify: bool | None = None) -> Unit:
    """Run every pass in order. `verify` (default: AGENTC_DEBUG is set) checks the invariants of
    the level after each and raises AssertionError naming the pass that broke one."""
    checked = bool(os.environ.get("AGENTC_DEBUG")) if verify is None else verify
    for transform in PASSES:
        unit = transform(unit, context)
        if checked and not context.sink.has_errors:
            _verify(unit, transform.__name__)
    return unit


def _verify(unit: Unit, after: str) -> None:
    faults = [] if unit.module is None else verify_module(unit.module)
    if unit.plan is not None:
        faults += verify_plan(unit.plan)
    if faults:
        raise AssertionError(f"after {after}: " + "; ".join(faults))
