"""Unit: what passes transform. It holds one field for each level; a pass adds the next level or
replaces the one it works on, and never looks above it."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentc.ir.module import Module
from agentc.plan.job import Plan
from agentc.syntax.nodes import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendChoice:
    """Which backend a stage got and why; `rejected` pairs the others with a reason each."""

    stage: str
    backend: str
    reason: str
    rejected: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One experiment on its way from syntax to plan."""

    spec: Spec
    module: Module | None = None
    plan: Plan | None = None
    choices: tuple[BackendChoice, ...] = ()
    notes: tuple[str, ...] = field(default=())
