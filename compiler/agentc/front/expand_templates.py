"""expand_templates: put the bodies of templates in the place of `use:`.

Requires: the positioned tree of a spec.
Ensures: a tree without `use`, `with` and `append` in any declaration. Nodes from a template keep
their place in it, their source says where it is used, and their expressions are closed over the
values of this use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentc.diagnostics.diagnostic import Source, Span
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed, suggestions
from agentc.front.expressions import Evaluator
from agentc.schema import language
from agentc.schema.keys import Place, misspelt_use
from agentc.source.scalars import is_expression
from agentc.source.tree import (
    Argument,
    Closure,
    Computed,
    Entry,
    Node,
    Scalar,
    Sequence,
    Unknown,
    append,
    described,
    merge,
)
from agentc.source.tree import Mapping as MappingNode
from agentc.templates.library import Template, TemplateLibrary

_DEEPEST = 12
_MOST_NODES = 100_000
_BY_SECTION = {section: makes for makes, section in language.TEMPLATES.items() if section}
_WHOLE = ("paper", "defaults")
"""Sections that are one declaration, not a table of them."""


def expand_templates(root: Node, library: TemplateLibrary, evaluator: Evaluator) -> Node:
    """The spec's tree with every template in its place."""
    if not isinstance(root, MappingNode):
        return root
    return _Expander(library, evaluator).spec(root)


@dataclass(slots=True)
class _Expander:
    library: TemplateLibrary
    evaluator: Evaluator
    nodes: int = 0
    _chain: list[str] = field(default_factory=list)

    @property
    def sink(self) -> Sink:
        return self.library.sink

    def spec(self, root: MappingNode) -> Node:
        applied = self._applied(root, "spec")
        return self._sections(applied) if isinstance(applied, MappingNode) else applied

    def _sections(self, root: MappingNode) -> MappingNode:
        """The declarations of every section, each with its template in place."""
        entries = []
        for entry in root.entries:
            makes = _BY_SECTION.get(entry.key.text)
            value: Node = entry.value
            if makes is not None and isinstance(value, MappingNode):
                if entry.key.text in _WHOLE:
                    value = self._applied(value, makes)
                else:
                    value = self._table(value, makes)
            entries.append(entry if value is entry.value else Entry(entry.key, value))
        return MappingNode(tuple(entries), root.span)

    def _table(self, table: MappingNode, makes: str) -> MappingNode:
        entries = []
        for entry in table.entries:
            value: Node = entry.value
            if isinstance(value, MappingNode):
                value = self._declaration(value, makes)
            entries.append(entry if value is entry.value else Entry(entry.key, value))
        return MappingNode(tuple(entries), table.span)

    def _declaration(self, declared: MappingNode, makes: str) -> Node:
        node = self._applied(declared, makes)
        if not isinstance(node, MappingNode):
            return node
        repeat = node.find("repeat") if makes == "stage" else None
        if repeat is None or not isinstance(repeat.value, MappingNode):
            return node
        inner = repeat.value.find("stages")
        if inner is None or not isinstance(inner.value, MappingNode):
            return node
        stages = self._table(inner.value, "stage")
        if all(
            a.value is b.value for a, b in zip(stages.entries, inner.value.entries, strict=True)
        ):
            return node
        rounds = _with(repeat.value, "stages", stages)
        return _with(node, "repeat", rounds)

    def _applied(self, node: MappingNode, makes: str) -> Node:
        """A declaration merged over the template that it uses, if it uses one. Unknown when the
        template cannot be had, so that what it would have given is not reported as missing."""
        use = node.find("use")
        extra = {key: node.find(key) for key in ("with", "append")}
        if use is None and not any(extra.values()):
            return node
        rest = tuple(e for e in node.entries if e.key.text not in language.USE_KEYS)
        own = MappingNode(rest, node.span)
        if use is None:
            use = misspelt_use(own, Place("", f"this {makes}"), self.sink)
            if use is None:
                self._no_use(extra)
                return own
            own = MappingNode(tuple(entry for entry in rest if entry is not use), node.span)
        lost = extra["with"] is None and any(
            isinstance(e.value, MappingNode) and suggestions(e.key.text, ["with"])
            for e in own.entries
        )  # `structure` reports the key
        body = self._instance(use, extra["with"], makes, lost)
        if not isinstance(body, MappingNode):
            return Unknown(node.span)
        added = extra["append"]
        merged = merge(append(body, added.value, self.sink) if added else body, own)
        assert isinstance(merged, MappingNode)
        return MappingNode(merged.entries, node.span)

    def _no_use(self, extra: Mapping[str, Entry | None]) -> None:
        for key, entry in extra.items():
            if entry is not None:
                self.sink.error(
                    "AGC423",
                    f"`{key}` belongs to a template, but nothing is used here",
                    entry.key.span,
                    fix="add `use: NAME`, or remove it",
                )

    def _instance(
        self, use: Entry, given: Entry | None, makes: str, lost: bool = False
    ) -> Node | None:
        """The body of a template for one use of it, with what it uses itself in place. Where what
        is given is `lost` to a misspelt key, nothing is missing."""
        if not isinstance(use.value, Scalar) or is_expression(use.value.text) or not use.value.text:
            self.sink.error(
                "AGC421",
                f"`use` cannot be {described(use.value)}",
                use.value.span,
                expected="the name of a template, or a file beside the spec as `./NAME.yaml`",
            )
            return None
        template = self.library.find(use.value)
        if template is None:
            return None
        if template.makes != makes:
            section = language.TEMPLATES[template.makes]
            where = f"it belongs in `{section}:`" if section else "it belongs at the top level"
            self.sink.error(
                "AGC426",
                f"template `{template.name}` makes a {template.makes}, not a {makes}",
                use.value.span,
                notes=(where,),
            )
            return None
        if template.source.name in self._chain or len(self._chain) >= _DEEPEST:
            circle = " -> ".join(f"`{name}`" for name in (*self._chain, template.source.name))
            self.sink.error("AGC427", f"templates use each other: {circle}", use.value.span)
            return None
        source = Source(template.source.name, template.source.text, used_at=use.value.span)
        closure = self._closure(template, given, source, use, lost)
        body = self._placed(template.body, source, closure)
        if self.nodes > _MOST_NODES:
            return None
        self._chain.append(template.source.name)
        try:
            assert isinstance(body, MappingNode)
            if makes == "spec":
                return self.spec(body)
            return body if makes in _WHOLE else self._declaration(body, makes)
        finally:
            self._chain.pop()

    def _closure(
        self, template: Template, given: Entry | None, source: Source, use: Entry, lost: bool
    ) -> Closure:
        values = self._params_of_use(template, given)
        arguments: dict[str, Argument] = {}
        closure = Closure(template.name, arguments)
        for name, param in template.params.items():
            own = values.get(name)
            node: Node | None = None
            if own is not None:
                node = own.value
            elif param.default is not None:
                node = self._placed(param.default, source, closure)
            elif not lost:
                self.sink.error(
                    "AGC428",
                    f"template `{template.name}` needs a value for `{name}`",
                    use.value.span if given is None else given.key.span,
                    notes=() if param.doc is None else (param.doc,),
                    fix=f"write `with: {{{name}: ...}}`",
                )
            argument = arguments[name] = Argument(name, node, param.rules)
            if own is not None and not _has_expression(own.value):
                self.evaluator.coerce_argument(argument, own.value)
        return closure

    def _params_of_use(self, template: Template, given: Entry | None) -> Mapping[str, Entry]:
        if given is None:
            return {}
        if not isinstance(given.value, MappingNode):
            self.sink.error(
                "AGC203",
                f"`with` cannot be {described(given.value)}",
                given.value.span,
                expected="a mapping of the template's parameters to values",
            )
            return {}
        found: dict[str, Entry] = {}
        for entry in given.value.entries:
            name = entry.key.text
            if name in template.params:
                found[name] = entry
                continue
            self.sink.error(
                "AGC429",
                f"template `{template.name}` has no parameter `{name}`",
                entry.key.span,
                expected=f"one of {listed(template.params)}" if template.params else "no `with`",
                notes=("a key of the body is set beside `use`, not under `with`",),
                fix=did_you_mean(name, template.params),
            )
            near = suggestions(name, template.params)
            for meant in near:
                # It does not count as missing too, and nothing is known of its value.
                found.setdefault(meant, Entry(entry.key, Unknown(entry.value.span)))
        return found

    def _placed(self, node: Node, source: Source, closure: Closure) -> Node:
        """A copy of a template's tree for one use of it."""
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            if self.nodes == _MOST_NODES + 1:
                self.sink.error(
                    "AGC105", f"templates give more than {_MOST_NODES} values", source.used_at
                )
            return node
        span = _moved(node.span, source)
        match node:
            case Scalar(text=text, quoted=quoted):
                return Scalar(text, quoted, span, closure if is_expression(text) else None)
            case Sequence(items=items):
                return Sequence(tuple(self._placed(i, source, closure) for i in items), span)
            case MappingNode(entries=entries):
                placed = []
                for entry in entries:
                    key = Scalar(entry.key.text, entry.key.quoted, _moved(entry.key.span, source))
                    placed.append(Entry(key, self._placed(entry.value, source, closure)))
                return MappingNode(tuple(placed), span)
        return node


def _moved(span: Span, source: Source) -> Span:
    return Span(source, span.line, span.column, span.end_line, span.end_column)


def _with(node: MappingNode, key: str, value: Node) -> MappingNode:
    entries = (Entry(e.key, value) if e.key.text == key else e for e in node.entries)
    return MappingNode(tuple(entries), node.span)


def _has_expression(node: Node) -> bool:
    match node:
        case Scalar():
            return is_expression(node.text)
        case Sequence(items=items):
            return any(_has_expression(item) for item in items)
        case MappingNode(entries=entries):
            return any(_has_expression(entry.value) for entry in entries)
        case Computed():
            return False
    return True
