"""Surroundings: what the rules need to know of a whole module, found in one walk through it.

Rounds may be thousands, so nothing here walks back through the ancestors of each stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from agentc.ir.module import Module, Stage, ordered
from agentc.kinds.field import Json
from agentc.kinds.interaction import PREFIXES
from agentc.kinds.table import COLLECTORS, MODEL_SOURCES, REWORKERS, TRAINERS

Tasks: TypeAlias = tuple[str, str]
"""An entry of `environments:` and a split of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleAnalysis:
    """Keyed by stage id.

    `roots`: the `model` stage that a checkpoint, or the policy of a stage, descends from.
    `trained_on`: the tasks whose trajectories a stage descends from through training, each with
    the first stage that collected them (the corpus of a tokenizer trains no policy). `prompts`:
    the prompts under which those trajectories were collected. `second_rounds`: by repeat, the
    stages of its second round.
    """

    roots: Mapping[str, Stage]
    trained_on: Mapping[str, Mapping[Tasks, str]]
    prompts: Mapping[str, frozenset[str]]
    second_rounds: Mapping[str, Sequence[Stage]] = field(default_factory=dict)


@dataclass(slots=True)
class _Walk:
    module: Module
    roots: dict[str, Stage] = field(default_factory=dict)
    trained_on: dict[str, Mapping[Tasks, str]] = field(default_factory=dict)
    prompts: dict[str, frozenset[str]] = field(default_factory=dict)
    _nothing: Mapping[Tasks, str] = field(default_factory=dict)

    def visit(self, stage: Stage) -> None:
        parents = [
            found
            for name in dict.fromkeys(name for names in stage.inputs.values() for name in names)
            if (found := self.module.stages.get(name)) is not None
        ]
        self.roots |= self._root(stage)
        # A policy that goes on from a trajectory is not trained on it.
        shown = stage.inputs.get(PREFIXES.name, ())
        teachers = [parent for parent in parents if parent.id not in shown]
        self.trained_on[stage.id] = {} if stage.kind in MODEL_SOURCES else self._tasks(teachers)
        self.prompts[stage.id] = self._prompts(stage, parents)

    def _root(self, stage: Stage) -> dict[str, Stage]:
        if stage.kind in MODEL_SOURCES:
            return {stage.id: stage}
        lead = stage.inputs.get("model", ())
        root = self.roots.get(lead[0]) if lead else None
        return {} if root is None else {stage.id: root}

    def _tasks(self, parents: list[Stage]) -> Mapping[Tasks, str]:
        merged: dict[Tasks, str] = {}
        for parent in parents:
            for tasks, source in self.trained_on.get(parent.id, self._nothing).items():
                merged.setdefault(tasks, source)
            if parent.kind in COLLECTORS:
                split = parent.fields.get("split")
                environment = parent.uses.get("environment")
                if split is not None and environment is not None:
                    merged.setdefault((environment, str(split.json)), parent.id)
        return merged

    def _prompts(self, stage: Stage, parents: list[Stage]) -> frozenset[str]:
        if stage.kind in REWORKERS:
            names = [n for role in REWORKERS[stage.kind] for n in stage.inputs.get(role, ())]
            return frozenset().union(*(self.prompts.get(name, ()) for name in names))
        if stage.kind in TRAINERS:
            return frozenset().union(*(self.prompts.get(parent.id, ()) for parent in parents))
        if stage.kind in COLLECTORS:
            return frozenset((stage.uses.get("prompt", ""),))
        return frozenset()


def survey(module: Module) -> ModuleAnalysis:
    """Walk the module once, in topological order."""
    walk = _Walk(module)
    for stage in ordered(module):
        walk.visit(stage)
    seconds: dict[str, list[Stage]] = {}
    for stage in module.stages.values():
        if stage.round == 2:
            seconds.setdefault(stage.id.partition(".2.")[0], []).append(stage)
    return ModuleAnalysis(
        roots=walk.roots, trained_on=walk.trained_on, prompts=walk.prompts, second_rounds=seconds
    )


def collected_by(stages: Sequence[str], module: Module) -> list[Stage]:
    """The stages whose episodes training data comes from: those named, and through pairs,
    revisions and mixtures those that they were made of. In order, each once."""
    found: dict[str, Stage] = {}
    pending = [*stages]
    for name in pending:
        stage = module.stages.get(name)
        if stage is None or name in found:
            continue
        found[name] = stage
        for role in REWORKERS.get(stage.kind, ()):
            pending += stage.inputs.get(role, ())
    return [stage for stage in found.values() if stage.kind not in REWORKERS]


def split_of(stage: Stage) -> Json:
    """The task split that a stage names."""
    value = stage.fields.get("split")
    return None if value is None else value.json
