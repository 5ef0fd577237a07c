"""The front end in one call: file -> positioned tree -> syntax -> params -> rounds -> module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentc.backend_api import BackendTable
from agentc.diagnostics.sink import Sink
from agentc.ir.module import Module
from agentc.passes.evaluate_params import evaluate_params
from agentc.passes.expand_repeat import expand_repeat
from agentc.passes.resolve_names import resolve_names
from agentc.schema.structure import structure
from agentc.source.load import load_file
from agentc.source.span import Source
from agentc.source.tree import Node
from agentc.syntax.expression import Evaluator
from agentc.syntax.nodes import Spec


def read_module(
    path: Path, params: Mapping[str, str], table: BackendTable, sink: Sink
) -> tuple[Spec, Module | None]:
    """Read a spec; `params` are the texts of `-p name=value`. Never raises for bad input.

    The module is None when the file could not be read at all. When the sink has errors the module
    is partial but closed: stages with errors, and those that need them, are left out.
    """
    source, root = load_file(path, sink)
    return build_module(source, root, params, table, sink)


def build_module(
    source: Source,
    root: Node | None,
    params: Mapping[str, str],
    table: BackendTable,
    sink: Sink,
) -> tuple[Spec, Module | None]:
    """`read_module` for a tree at hand."""
    spec = structure(root, source, table, sink)
    if root is None:
        return spec, None
    evaluator = Evaluator(sink)
    scope = evaluate_params(spec, params, evaluator, sink)
    rounds = expand_repeat(spec, scope, evaluator, sink)
    module = resolve_names(spec, scope, rounds, table, evaluator, sink)
    if not sink.has_errors:
        for name, declared in spec.params.items():
            if name not in evaluator.used:
                sink.warning(
                    "AGC308",
                    f"nothing uses the param `{name}`",
                    declared.name.span,
                    fix=f'use it as "{{{{ {name} }}}}", or remove it',
                )
    return spec, module
