"""join_cells: the modules of a sweep's cells become one module.

Requires: a module for each cell.
Ensures: one module in which a stage that is the same in several cells stands once. Its id says
what it depends on: `expert` for all cells, `sft@seed=0` for those with that seed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentc.diagnostics.diagnostic import Origin
from agentc.ir.claim import Claim, Run
from agentc.ir.module import Bodies, Module, Prompt, Resource, Stage
from agentc.ir.search import StoppingRounds, ended
from agentc.kinds.field import Json
from agentc.source.tree import written

Labels = Mapping[str, tuple[str, ...]]
"""Axis -> the label of each value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptModule:
    """The module of one cell, with the position of its value on each axis."""

    index: tuple[int, ...]
    module: Module


def axis_labels(axes: Mapping[str, Sequence[Json]]) -> dict[str, tuple[str, ...]]:
    """Labels of values for ids: letters, digits, `_`, `+` and `-`; distinct on each axis."""
    found: dict[str, tuple[str, ...]] = {}
    for axis, values in axes.items():
        plain = [_label(value) for value in values]
        found[axis] = tuple(
            label if plain.count(label) == 1 else f"{label}-{number}"
            for number, label in enumerate(plain)
        )
    return found


def join_cells(
    cells: Sequence[SweptModule], labels: Labels, values: Mapping[str, Sequence[Json]]
) -> Module:
    """One module of all cells."""
    first = cells[0].module
    if not labels:
        return first
    sweep = _Sweep(cells, labels, values)
    tables = {use: sweep.table(use, of_module) for use, of_module in _TABLES.items()}
    stages = sweep.stages()
    names = [known.get("stage", {}) for known in sweep.renamed]
    return replace(
        first,
        stages=stages,
        environments=tables["environment"],  # type: ignore[arg-type]
        servers=tables["server"],  # type: ignore[arg-type]
        prompts=tables["prompt"],  # type: ignore[arg-type]
        claims=_claims([(sweep.place(cell), cell) for cell in cells], names),
        stopping=_stopping(cells, names),
        params={name: value for name, value in first.params.items() if name not in labels},
        matrix={axis: list(values[axis]) for axis in labels},
    )


class _Sweep:
    """The cells, and by cell and section the joined names of entries and stages (`renamed`)."""

    def __init__(
        self, cells: Sequence[SweptModule], labels: Labels, values: Mapping[str, Sequence[Json]]
    ) -> None:
        self.cells, self.labels, self.values = cells, labels, values
        self.axes = tuple(labels)
        self.renamed: list[dict[str, dict[str, str]]] = [{} for _ in cells]

    def place(self, cell: SweptModule) -> dict[str, str]:
        """By axis, the label of a cell's value."""
        return {axis: self.labels[axis][at] for axis, at in zip(self.axes, cell.index, strict=True)}

    def table(
        self, use: str, of_module: Callable[[Module], Mapping[str, Resource | Prompt]]
    ) -> dict[str, Resource | Prompt]:
        """The entries of all cells in one section."""
        joined: dict[str, Resource | Prompt] = {}
        for name in dict.fromkeys(name for cell in self.cells for name in of_module(cell.module)):
            entries = [
                _asking(of_module(cell.module).get(name), names)
                for cell, names in zip(self.cells, self.renamed, strict=True)
            ]
            content = [None if entry is None else _content(entry) for entry in entries]
            on = _depends(self.cells, content, self.axes)
            for number, entry in enumerate(entries):
                if entry is not None:
                    label = self._rename(number, use, name, on)
                    joined.setdefault(label, replace(entry, name=label))
        return joined

    def stages(self) -> dict[str, Stage]:
        """The stages of all cells, after the tables that they name."""
        joined: dict[str, Stage] = {}
        bodies = Bodies()
        # Where rounds have ended in some cells, a stage says in its name in which it is there.
        absent = "" if any(ended(cell.module.stopping) for cell in self.cells) else None
        for name in _ordered(self.cells):
            stages = [
                _moved(cell.module.stages.get(name), names, bodies)
                for cell, names in zip(self.cells, self.renamed, strict=True)
            ]
            content = [
                absent if stage is None else (stage.body, *stage.inputs.items()) for stage in stages
            ]
            on = _depends(self.cells, content, self.axes)
            for number, stage in enumerate(stages):
                if stage is not None:
                    label = self._rename(number, "stage", name, on)
                    if label not in joined:
                        joined[label] = self._labelled(stage, label, number, on)
        return joined

    def _labelled(self, stage: Stage, label: str, number: int, on: Sequence[str]) -> Stage:
        """A stage of a cell as one of the joined module; it depends on the axes `on`."""
        at = dict(zip(self.axes, self.cells[number].index, strict=True))
        return replace(
            stage,
            id=label,
            base=stage.id,
            cell={axis: self.values[axis][at[axis]] for axis in on},
            origin=_without(stage.origin, [axis for axis in self.axes if axis not in on]),
        )

    def _rename(self, number: int, use: str, name: str, on: Sequence[str]) -> str:
        at = self.place(self.cells[number])
        label = name + "@" + ",".join(f"{axis}={at[axis]}" for axis in on) if on else name
        self.renamed[number].setdefault(use, {})[name] = label
        return label


def _without(origin: Origin, axes: Sequence[str]) -> Origin:
    """An origin without the values of axes that the stage does not depend on."""
    shared = tuple(f"{axis} = " for axis in axes)
    return replace(origin, steps=tuple(s for s in origin.steps if not s.startswith(shared)))


def _claims(
    cells: Sequence[tuple[Mapping[str, str], SweptModule]], names: Sequence[Mapping[str, str]]
) -> tuple[Claim, ...]:
    """The claims of all cells, with the joined names of the stages that they are about."""
    placed: list[tuple[Mapping[str, str], Claim]] = []
    for (at, cell), known in zip(cells, names, strict=True):
        for claim in cell.module.claims:
            if all(stage in known for stage in claim.stages):
                other = claim.difference_from
                baseline = None if other is None else known[other]
                moved = replace(claim, stage=known[claim.stage], difference_from=baseline)
                placed.append((at, moved))
    return join_claims(placed)


def _stopping(
    cells: Sequence[SweptModule], names: Sequence[Mapping[str, str]]
) -> tuple[StoppingRounds, ...]:
    """The rounds that stop, of all cells, with joined names; once for cells whose measures are the
    same, in which they end alike."""
    found: dict[tuple[object, ...], StoppingRounds] = {}
    for cell, known in zip(cells, names, strict=True):
        for each in cell.module.stopping:
            if any(stage not in known for stages in each.rounds for stage in stages):
                continue  # left out for an error
            moved = replace(
                each,
                measures=tuple(known[stage] for stage in each.measures),
                rounds=tuple(tuple(known[stage] for stage in stages) for stages in each.rounds),
                cells=(cell.index,),
            )
            same = (each.repeat, each.rule, each.most, moved.measures)
            found[same] = moved if same not in found else found[same].with_cells_of(moved)
    return tuple(found.values())


_TABLES: dict[str, Callable[[Module], Mapping[str, Resource | Prompt]]] = {
    "server": lambda module: module.servers,
    "environment": lambda module: module.environments,  # after the servers that they name
    "prompt": lambda module: module.prompts,
}


def _asking(
    entry: Resource | Prompt | None, names: Mapping[str, Mapping[str, str]]
) -> Resource | Prompt | None:
    """An entry of a cell with the joined names of the servers that it asks."""
    if not isinstance(entry, Resource) or not entry.simulators:
        return entry
    known = names.get("server", {})
    moved = {
        role: replace(asked, json={**asked.json, "server": known.get(name, name)})
        for role, asked in entry.simulators.items()
        if isinstance(asked.json, dict) and (name := entry.simulator_server(role)) is not None
    }
    return replace(entry, simulators=moved)


def _moved(
    stage: Stage | None, names: Mapping[str, Mapping[str, str]], bodies: Bodies
) -> Stage | None:
    """A stage of a cell with the joined names of what it refers to."""
    if stage is None:
        return None
    known = names.get("stage", {})
    if any(each not in known for ids in stage.inputs.values() for each in ids):
        return None
    uses = {use: names.get(use, {}).get(name, name) for use, name in stage.uses.items()}
    inputs = {role: tuple(known[each] for each in ids) for role, ids in stage.inputs.items()}
    return replace(stage, inputs=inputs, body=bodies.of(replace(stage.body, uses=uses)))


def _ordered(cells: Sequence[SweptModule]) -> list[str]:
    """Names of the stages of all cells, each after what it reads."""
    reads: dict[str, dict[str, None]] = {}
    for cell in cells:
        for name, stage in cell.module.stages.items():
            inputs = reads.setdefault(name, {})
            inputs.update(dict.fromkeys(i for ids in stage.inputs.values() for i in ids))
    order: dict[str, None] = {}
    for root in reads:
        pending = [root]
        while pending:
            name = pending[-1]
            missing = [each for each in reads[name] if each not in order and each in reads]
            if name in order or not missing:
                order.setdefault(name)
                pending.pop()
            else:
                pending += reversed(missing)
    return list(order)


def _depends(
    cells: Sequence[SweptModule], content: Sequence[Hashable], axes: Sequence[str]
) -> tuple[str, ...]:
    """The axes that tell apart the contents; all of them when a value on its own does not."""
    if len(set(content) - {None}) <= 1:
        return ()
    known = {cell.index: content[number] for number, cell in enumerate(cells)}
    on = []
    for position, axis in enumerate(axes):
        groups: dict[tuple[int, ...], set[Hashable]] = {}
        for index, text in known.items():
            if text is not None:
                rest = index[:position] + index[position + 1 :]
                groups.setdefault(rest, set()).add(text)
        if any(len(texts) > 1 for texts in groups.values()):
            on.append(axis)
    positions = [axes.index(axis) for axis in on]
    seen: dict[tuple[int, ...], Hashable] = {}
    for index, text in known.items():
        if text is not None and seen.setdefault(tuple(index[p] for p in positions), text) != text:
            # Cells are missing where the axes would have shown themselves one by one.
            return tuple(axes)
    return tuple(on)


def _content(entry: Resource | Prompt) -> str:
    if isinstance(entry, Prompt):
        texts = (entry.system, entry.instruction, entry.acknowledgement, entry.observation_prefix)
        looks = (entry.reply_format, entry.output_marker, entry.memory)
        return json.dumps([*texts, entry.examples, *looks])
    parts = [entry.backend, *map(_plain, (entry.fields, entry.options, entry.sharing))]
    if entry.simulators:
        parts.append(_plain(entry.simulators))
    return json.dumps(parts, sort_keys=True)


def _plain(values: Mapping[str, object]) -> dict[str, object]:
    return {name: getattr(value, "json", value) for name, value in values.items()}


def _label(value: Json) -> str:
    text = value if isinstance(value, str) else written(value)
    return re.sub(r"[^A-Za-z0-9_+-]+", "_", text)[:40] or "empty"


# join_claims: the claims of a sweep's cells become those of one module.
#
# A claim stands once for each cell whose stages differ, with the cell in its name; one that goes
# `over:` some of the swept params stands for all of their values, and is about the mean of the
# runs.

Cell = Mapping[str, str]
"""Swept param -> label of its value."""


def join_claims(placed: Sequence[tuple[Cell, Claim]]) -> tuple[Claim, ...]:
    """The claims of all cells; their stages bear the names that they have in the joined module."""
    groups: dict[tuple[Claim, tuple[tuple[str, str], ...]], dict[Run, None]] = {}
    for cell, claim in placed:
        rest = tuple((axis, label) for axis, label in cell.items() if axis not in claim.over)
        groups.setdefault((_without_stages(claim), rest), {})[
            claim.stage, claim.difference_from
        ] = None
    found: dict[tuple[Claim, tuple[Run, ...]], tuple[tuple[str, str], ...]] = {}
    for (said, rest), runs in groups.items():
        found.setdefault((said, tuple(runs)), rest)
    named = [(_bound(said, runs), rest) for (said, runs), rest in found.items()]
    return tuple(_named(claim, rest, named) for claim, rest in named)


def _without_stages(claim: Claim) -> Claim:
    """The claim without the stages that test it."""
    return replace(claim, stage="", difference_from=None)


def _bound(claim: Claim, runs: tuple[Run, ...]) -> Claim:
    stage, baseline = runs[0]
    if len(runs) == 1:
        return replace(claim, stage=stage, difference_from=baseline)
    common = None if baseline is None else _base(baseline)
    return replace(claim, stage=_base(stage), difference_from=common, runs=runs)


def _base(stage: str) -> str:
    return stage.partition("@")[0]


def _named(
    claim: Claim,
    rest: tuple[tuple[str, str], ...],
    all_named: Sequence[tuple[Claim, tuple[tuple[str, str], ...]]],
) -> Claim:
    """With the cell in its name, as far as it tells claims of one name apart."""
    others = [dict(cell) for other, cell in all_named if other.name == claim.name]
    if len(others) == 1:
        return claim
    telling = [(axis, label) for axis, label in rest if len({c.get(axis) for c in others}) > 1]
    return replace(claim, name=claim.name + "@" + ",".join(f"{a}={label}" for a, label in telling))
