"""What is fuzzed: each target takes bytes and raises for anything that agentc must never do.

The harness (`run.py`), the property tests and the kept crashers (`crashers/`) share them. A target
may end in diagnostics, never in an exception; what it found must render as text and as JSON; and
an expression's value must be plain JSON, whatever the expression was.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from agentc.backend_api import BackendTable, load_backends
from agentc.diagnostics import Sink, render_json, render_text
from agentc.diagnostics.diagnostic import Source, Span
from agentc.front.expressions import Evaluator
from agentc.front.read_module import build_module
from agentc.kinds.field import Json
from agentc.passes import PassContext, Unit, run_passes
from agentc.plan.render import render_plan
from agentc.source.load import load_bytes, load_text
from agentc.source.tree import Computed, Mapping, Node, Scalar, Sequence, Unknown

BUG_OF_A_BACKEND = "AGC605"
_SCOPE: dict[str, Json] = {
    "seed": 3,
    "share": 0.5,
    "name": "demo",
    "flag": True,
    "nothing": None,
    "sizes": [1, 2, 3],
    "texts": ["a", "b"],
    "round": 2,
}

_USES = (
    "agentc: 1\nname: demo\nuse: ./t.yaml\nwith: {seed: 1, model: base}\n",
    "agentc: 1\nname: demo\nenvironments: {e: {backend: textcraft}}\n"
    "models: {m: {use: ./t.yaml, with: {seed: 1}}}\n"
    'stages:\n  a: {use: ./t.yaml, with: {model: m, seed: "{{ 1 + 1 }}"}, append: {x: [1]}}\n'
    "  r: {repeat: {n: 2, stages: {a: {use: ./t.yaml}, b: {use: ./t.yaml, with: {model: a}}}}}\n",
)


class Targets:
    """The targets with what they need once: the table of backends and an empty folder."""

    def __init__(self, table: BackendTable | None = None) -> None:
        self._table = load_backends() if table is None else table
        self._kept = tempfile.TemporaryDirectory(prefix="agentc-fuzz-")  # gone with this object
        self._folder = Path(self._kept.name)

    def named(self) -> dict[str, Callable[[bytes], None]]:
        """Targets by name."""
        return {
            "front_end": self.front_end,
            "expressions": self.expressions,
            "templates": self.templates,
        }

    def templates(self, data: bytes) -> None:
        """A template file, used where a stage, a model and a whole spec may use one."""
        (self._folder / "t.yaml").write_bytes(data)
        for use in _USES:
            self.front_end(use.encode())

    def front_end(self, data: bytes) -> None:
        """A whole spec, from bytes to plan.json."""
        sink = Sink()
        source, root = load_bytes(data, "spec.yaml", sink)
        spec, module = build_module(source, root, {}, self._table, sink, directory=self._folder)
        context = PassContext(table=self._table, sink=sink, directory=self._folder)
        unit = run_passes(Unit(spec=spec, module=module), context, verify=True)
        if unit.plan is not None and not sink.has_errors:
            json.loads(render_plan(unit.plan).encode("utf-8"))
        check_report(sink)

    def expressions(self, data: bytes) -> None:
        """The text of one scalar, evaluated in a scope of every type."""
        sink = Sink()
        text = data.decode("utf-8", "replace")
        source = Source("spec.yaml", text)
        node = Scalar(text, True, Span(source, 1, 1, 1, 2))
        check_tree(Evaluator(sink).evaluate(node, _SCOPE))
        check_report(sink)


def check_report(sink: Sink) -> None:
    """Whatever was found can be shown, and moves no cursor."""
    found = sink.sorted()
    bugs = [each.message for each in found if each.code == BUG_OF_A_BACKEND]
    assert not bugs, bugs
    text = render_text(found)
    text.encode("utf-8")
    assert all(char == "\n" or char.isprintable() for char in text), "an unprintable message"
    json.loads(render_json(found).encode("utf-8"))


def check_tree(node: Node) -> None:
    """Every value is plain JSON."""
    match node:
        case Computed(json=value):
            json.dumps(value, allow_nan=False).encode("utf-8")
            _check_types(value)
        case Sequence(items=items):
            for item in items:
                check_tree(item)
        case Mapping(entries=entries):
            for entry in entries:
                check_tree(entry.value)
        case Scalar(text=text):
            text.encode("utf-8")
        case Unknown():
            pass


def _check_types(value: Json) -> None:
    assert type(value) in (type(None), bool, int, float, str, list, dict), type(value)
    if isinstance(value, list):
        for item in value:
            _check_types(item)


def read_tree(data: bytes) -> Node | None:
    """The tree of some text, for those who want to change one before it is read as a spec."""
    return load_text(Source("spec.yaml", data.decode("utf-8", "replace")), Sink())
