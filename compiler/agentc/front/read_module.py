"""The front end: one tuple of plain functions, each `(Reading, FrontContext) -> Reading`.

A positioned tree gets its templates and its scale, becomes declarations, then modules (one for
each cell of the matrix), then one module. `agentc.passes` makes a plan of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from agentc.backend_api import BackendTable
from agentc.diagnostics.diagnostic import Source
from agentc.diagnostics.sink import Sink
from agentc.front.apply_scale import apply_scale, scale_names
from agentc.front.expand_repeat import MOST_STAGES, expand_repeat
from agentc.front.expand_templates import expand_templates
from agentc.front.expressions import Evaluator
from agentc.front.join_cells import SweptModule, axis_labels, join_cells
from agentc.front.model_names import add_branches, spell_out_models
from agentc.front.params import chosen_params, evaluate_params, expand_matrix
from agentc.front.resolve_names import ENOUGH_STAGES, resolve_names, warn_unused
from agentc.front.resolve_search import resolve_search
from agentc.front.stage_values import BoundValues
from agentc.front.swept_params import with_swept_params
from agentc.ir.module import Module
from agentc.ir.search import Ends
from agentc.kinds.field import Json
from agentc.schema.foreign_configs import report_foreign_config
from agentc.schema.structure import report_empty, structure
from agentc.source.tree import Node, written
from agentc.syntax.nodes import Spec
from agentc.templates.library import TemplateLibrary


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One spec on its way from a tree to a module: a field for each level, as in `passes.Unit`.

    `axes` are the swept params with the values that each has, by its place on the axis.
    """

    source: Source
    tree: Node
    spec: Spec | None = None
    cells: tuple[SweptModule, ...] = ()
    axes: Mapping[str, Mapping[int, Json]] = field(default_factory=dict)
    module: Module | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontContext:
    """`params` are the texts of `-p name=value`; `scale` is the one that was asked for; `ends` says
    where rounds have stopped."""

    params: Mapping[str, str]
    table: BackendTable
    sink: Sink
    directory: Path
    scale: str | None
    evaluator: Evaluator
    library: TemplateLibrary
    ends: Ends = field(default_factory=dict)


def build_module(
    source: Source,
    root: Node | None,
    params: Mapping[str, str],
    table: BackendTable,
    sink: Sink,
    *,
    directory: Path = Path(),
    scale: str | None = None,
    ends: Ends | None = None,
) -> tuple[Spec, Module | None]:
    """Read a spec's tree; `params` are the texts of `-p name=value`, `directory` is where templates
    beside the spec lie, `ends` says where rounds have stopped. Never raises for bad input.

    The module is None when the file could not be read at all. When the sink has errors the module
    is partial but closed: stages with errors, and those that need them, are left out.
    """
    if root is None or report_foreign_config(root, sink):
        return structure(None, source, table, sink), None
    context = FrontContext(
        params=params,
        table=table,
        sink=sink,
        directory=directory,
        scale=scale,
        evaluator=Evaluator(sink),
        library=TemplateLibrary(directory, sink),
        ends=ends or {},
    )
    reading = Reading(source=source, tree=root)
    for transform in FRONT_PASSES:
        reading = transform(reading, context)
    return _spec_of(reading), reading.module


def use_templates(reading: Reading, context: FrontContext) -> Reading:
    """Each `use:` becomes the body of its template."""
    tree = expand_templates(reading.tree, context.library, context.evaluator)
    return replace(reading, tree=tree)


def choose_scale(reading: Reading, context: FrontContext) -> Reading:
    """The scale that was asked for is laid over the tree; the others are checked in outline. A
    model that is a text is spelled out before, so that a scale may change its settings, and after:
    a text of the scale replaces all of the model."""
    tree = spell_out_models(reading.tree, context.directory)
    tree = spell_out_models(apply_scale(tree, context.scale, context.sink), context.directory)
    return replace(reading, tree=add_branches(tree))


def read_syntax(reading: Reading, context: FrontContext) -> Reading:
    """The tree becomes declarations; what has no place in the language is reported."""
    spec = replace(
        with_swept_params(structure(reading.tree, reading.source, context.table, context.sink)),
        scales=scale_names(reading.tree),
        templates=tuple(context.library.files.values()),
    )
    evaluator = context.evaluator
    evaluator.lost = "params" in spec.broken
    if "params" in spec.empty:
        evaluator.empty = partial(report_empty, "params", spec.empty["params"], context.sink)
    return replace(reading, spec=spec)


def read_cells(reading: Reading, context: FrontContext) -> Reading:
    """Each cell of the matrix becomes a module: its params, its rounds, its names. Cell by cell,
    so that a sweep of thousands which repeats one error is cut short."""
    spec, sink, evaluator = _spec_of(reading), context.sink, context.evaluator
    cells: list[SweptModule] = []
    axes: dict[str, dict[int, Json]] = {}
    values = BoundValues()
    stages = 0
    for cell in expand_matrix(spec, context.params, evaluator, sink):
        if cells and stages > ENOUGH_STAGES and sink.has_errors:
            sink.cut_short()
            break
        scope = evaluate_params(spec, context.params, evaluator, sink, cell.nodes)
        steps = tuple(f"{name} = {written(scope[name])}" for name in cell.nodes)
        for (name, _), position in zip(cell.nodes.items(), cell.index, strict=True):
            axes.setdefault(name, {})[position] = scope[name]
        sink.sweep([steps])
        ends = {name: last for (name, at), last in context.ends.items() if at == cell.index}
        rounds = expand_repeat(spec, scope, evaluator, sink, steps, ends)
        stages += len(rounds.stages)
        if stages > MOST_STAGES and cells:
            sink.error(
                "AGC105",
                f"the matrix gives more than {MOST_STAGES} stages",
                None if spec.matrix is None else spec.matrix.span,
            )
            break
        module = resolve_names(spec, scope, rounds, context.table, evaluator, sink, values)
        cells.append(SweptModule(index=cell.index, module=module))
    return replace(reading, cells=tuple(cells), axes=axes)


def warn_of_unused(reading: Reading, context: FrontContext) -> Reading:
    """Params, models and the like that nothing uses; not beside errors, which may be why."""
    if not context.sink.has_errors:
        _warn(_spec_of(reading), reading.cells, context.evaluator, context.sink)
    return reading


def join(reading: Reading, context: FrontContext) -> Reading:
    """One module of all cells."""
    values = {name: [found[at] for at in sorted(found)] for name, found in reading.axes.items()}
    module = join_cells(list(reading.cells), axis_labels(values), values)
    templates = {
        shown: sha256(path.read_bytes()).hexdigest()
        for shown, path in sorted(context.library.files.items())
    }
    chosen = chosen_params(_spec_of(reading), context.params, module.params)
    module = replace(module, scale=context.scale, chosen=chosen, templates=templates)
    search = resolve_search(
        _spec_of(reading), module, context.params, context.evaluator, context.sink
    )
    module = replace(module, search=search)
    return replace(reading, module=module)


FrontPass: TypeAlias = Callable[[Reading, FrontContext], Reading]

FRONT_PASSES: tuple[FrontPass, ...] = (
    use_templates,
    choose_scale,
    read_syntax,
    read_cells,  # for each cell: evaluate_params, expand_repeat, resolve_names
    warn_of_unused,
    join,
)


def _spec_of(reading: Reading) -> Spec:
    assert reading.spec is not None, "`read_syntax` comes first"
    return reading.spec


def _warn(spec: Spec, cells: Sequence[SweptModule], evaluator: Evaluator, sink: Sink) -> None:
    warn_unused(spec, [cell.module for cell in cells], sink)
    for name, declared in spec.params.items():
        if name not in evaluator.used:
            sink.unused(
                "AGC308",
                f"nothing uses the param `{name}`",
                declared.name.span,
                fix=f'use it as "{{{{ {name} }}}}", or remove it',
            )
