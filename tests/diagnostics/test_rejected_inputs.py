"""An input of the wrong type is the only error that is reported of it: what other checks would say
of a stage that was never meant follows from that. Each edge of some specs is tried in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from agentc.backend_api import load_backends
from agentc.diagnostics import Sink, render_text
from agentc.front.read_module import build_module
from agentc.ir.module import Module, product_of
from agentc.kinds import kind_named
from agentc.lock.references import OutsideReferences
from agentc.passes import PassContext, Unit, run_passes
from agentc.source.load import load_file
from agentc.syntax.nodes import Spec

_CHECKOUT = Path(__file__).parents[2]
_SPECS = {
    "tests/diagnostics/newcomers/base.yaml": None,
    "specs/archer/tiny.yaml": None,
    "specs/sweet_rl/tiny.yaml": "evaluate_sweet",
}
"""Specs, and the stage that is kept with those that it needs; None: all are."""


@cache
def _read(name: str) -> tuple[Spec, Module]:
    sink = Sink()
    path = _CHECKOUT / name
    source, root = load_file(path, sink)
    spec, module = build_module(source, root, {}, load_backends(), sink, directory=path.parent)
    assert module is not None, render_text(sink.sorted())
    last = _SPECS[name]
    if last is None:
        return spec, module
    kept = _before(module, last)
    stages = {each: stage for each, stage in module.stages.items() if each in kept}
    return spec, replace(module, stages=stages, claims=())


def _codes(name: str, module: Module) -> tuple[list[str], str]:
    spec, _ = _read(name)
    sink = Sink()
    references = OutsideReferences(pins={}, moving=True)
    folder = (_CHECKOUT / name).parent
    context = PassContext(
        table=load_backends(), sink=sink, directory=folder, references=references, allowed=()
    )
    run_passes(Unit(spec=spec, module=module), context)
    errors = [each for each in sink.sorted() if each.severity == "error"]
    return [each.code for each in errors], render_text(errors)


def _misfits(name: str) -> Iterator[tuple[str, str, str]]:
    """(stage, role, a stage whose product does not fit): for each role of each kind, the first edge
    and the first misfit of each type."""
    _, module = _read(name)
    tried: set[tuple[str, str, str]] = set()
    for stage in module.stages.values():
        kind = kind_named(stage.kind)
        for role in () if kind is None or kind.gathers else kind.roles_of(stage.inputs):
            for other in module.stages.values() if stage.inputs.get(role.name) else ():
                made = product_of(other)
                known = (stage.kind, role.name, str(made and made.name))
                if made is None or made.fits(*role.accepts) or known in tried:
                    continue
                if other.id not in _after(module, stage.id):
                    tried.add(known)
                    yield stage.id, role.name, other.id


def _before(module: Module, last: str) -> set[str]:
    """The stage and what it depends on."""
    found, left = set[str](), [last]
    while left:
        name = left.pop()
        found.add(name)
        inputs = module.stages[name].inputs.values()
        left += [each for names in inputs for each in names if each not in found]
    return found


def _after(module: Module, start: str) -> set[str]:
    """The stage and what depends on it: reading from these would be a circle."""
    found = {start}
    while True:
        more = {
            name
            for name, stage in module.stages.items()
            if name not in found and any(found & set(names) for names in stage.inputs.values())
        }
        if not more:
            return found
        found |= more


@pytest.mark.parametrize("name", _SPECS)
def test_an_input_of_the_wrong_type_is_one_error(name: str) -> None:
    _, module = _read(name)
    assert _codes(name, module) == ([], "")
    misfits = list(_misfits(name))
    assert misfits
    for stage_id, role, other in misfits:
        stage = module.stages[stage_id]
        wrong = stage.with_inputs({**stage.inputs, role: (other,)})
        changed = replace(module, stages={**module.stages, stage_id: wrong})
        codes, text = _codes(name, changed)
        assert set(codes) == {"AGC501"}, f"{stage_id}.{role}: {other}\n{text}"
