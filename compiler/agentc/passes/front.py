"""The front end in one call: file -> positioned tree -> templates and scale in place -> syntax ->
cells of the matrix -> params -> rounds -> module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from agentc.backend_api import BackendTable
from agentc.diagnostics.sink import Sink
from agentc.ir.module import Module
from agentc.kinds.field import Json
from agentc.passes.apply_scale import apply_scale, scale_names
from agentc.passes.evaluate_params import chosen_params, evaluate_params
from agentc.passes.expand_matrix import expand_matrix
from agentc.passes.expand_repeat import MOST_STAGES, expand_repeat
from agentc.passes.expand_templates import expand_templates
from agentc.passes.join_cells import SweptModule, axis_labels, join_cells
from agentc.passes.resolve_names import ENOUGH_STAGES, resolve_names, warn_unused
from agentc.schema.structure import report_empty, structure
from agentc.source.load import load_file
from agentc.source.read import folder_of
from agentc.source.span import Source
from agentc.source.tree import Node, written
from agentc.syntax.expression import Evaluator
from agentc.syntax.nodes import Spec
from agentc.templates.library import TemplateLibrary


def read_module(
    path: Path,
    params: Mapping[str, str],
    table: BackendTable,
    sink: Sink,
    *,
    scale: str | None = None,
) -> tuple[Spec, Module | None]:
    """Read a spec; `params` are the texts of `-p name=value`. Never raises for bad input.

    The module is None when the file could not be read at all. When the sink has errors the module
    is partial but closed: stages with errors, and those that need them, are left out.
    """
    source, root = load_file(path, sink)
    return build_module(source, root, params, table, sink, directory=folder_of(path), scale=scale)


def build_module(
    source: Source,
    root: Node | None,
    params: Mapping[str, str],
    table: BackendTable,
    sink: Sink,
    *,
    directory: Path = Path(),
    scale: str | None = None,
) -> tuple[Spec, Module | None]:
    """`read_module` for a tree at hand; `directory` is where templates beside the spec lie."""
    if root is None:
        return structure(root, source, table, sink), None
    evaluator = Evaluator(sink)
    library = TemplateLibrary(directory, sink)
    whole = apply_scale(expand_templates(root, library, evaluator), scale, sink)
    spec = replace(
        structure(whole, source, table, sink),
        scales=scale_names(whole),
        templates=tuple(library.files.values()),
    )
    evaluator.lost = "params" in spec.broken
    if "params" in spec.empty:
        evaluator.empty = partial(report_empty, "params", spec.empty["params"], sink)
    swept: list[SweptModule] = []
    axes: dict[str, dict[int, Json]] = {}
    stages = 0
    for cell in expand_matrix(spec, params, evaluator, sink):
        if swept and stages > ENOUGH_STAGES and sink.has_errors:
            sink.cut_short()
            break
        scope = evaluate_params(spec, params, evaluator, sink, cell.nodes)
        steps = tuple(f"{name} = {written(scope[name])}" for name in cell.nodes)
        for (name, _), position in zip(cell.nodes.items(), cell.index, strict=True):
            axes.setdefault(name, {})[position] = scope[name]
        rounds = expand_repeat(spec, scope, evaluator, sink, steps)
        stages += len(rounds.stages)
        if stages > MOST_STAGES and swept:
            sink.error(
                "AGC105",
                f"the matrix gives more than {MOST_STAGES} stages",
                None if spec.matrix is None else spec.matrix.span,
            )
            break
        module = resolve_names(spec, scope, rounds, table, evaluator, sink)
        swept.append(SweptModule(index=cell.index, module=module))
    if not sink.has_errors:
        _warn(spec, swept, evaluator, sink)
    values = {name: [found[at] for at in sorted(found)] for name, found in axes.items()}
    module = join_cells(swept, axis_labels(values), values)
    templates = {
        shown: sha256(path.read_bytes()).hexdigest()
        for shown, path in sorted(library.files.items())
    }
    chosen = chosen_params(spec, params, module.params)
    return spec, replace(module, scale=scale, chosen=chosen, templates=templates)


def _warn(spec: Spec, cells: list[SweptModule], evaluator: Evaluator, sink: Sink) -> None:
    stages = (stage for cell in cells for stage in cell.module.stages.values())
    warn_unused(spec, stages, sink)
    for name, declared in spec.params.items():
        if name not in evaluator.used:
            sink.warning(
                "AGC308",
                f"nothing uses the param `{name}`",
                declared.name.span,
                fix=f'use it as "{{{{ {name} }}}}", or remove it',
            )
