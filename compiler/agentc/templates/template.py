"""Template: a fragment of a spec with typed parameters, as one YAML file.

    agentc: 1
    template: stage
    doc: What it does.
    params:
      data: {type: str, doc: "The stage whose rows are trained on."}
    body:
      kind: sft
      data: "{{ data }}"

Its expressions see its parameters and `round`, nothing else, so a template means the same in every
spec. Neighbours: `library.py`; `agentc.front.expand_templates`, which puts bodies into place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentc.diagnostics.diagnostic import Source, Span
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.kinds.field import Json
from agentc.schema import language
from agentc.schema.keys import Place, as_mapping, read_keys
from agentc.schema.param_rules import param_rules
from agentc.schema.structure import read_params
from agentc.source.tree import Entry, Node, Scalar, Unknown, described
from agentc.source.tree import Mapping as MappingNode


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateParam:
    """A parameter: `rules` is its type as JSON Schema, `default` is None when it is required."""

    name: str
    rules: Mapping[str, Json]
    default: Node | None
    doc: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """`name` is what `use:` says, `makes` what its body is (`stage`, `spec`, ...)."""

    name: str
    makes: str
    doc: str
    params: Mapping[str, TemplateParam]
    body: MappingNode
    source: Source


def read_template(name: str, source: Source, root: Node, sink: Sink) -> Template | None:
    """The template in a file's tree; None when it is not one (reported)."""
    place = Place("template", f"template `{name}`")
    mapping = as_mapping(root, place, sink, "a mapping with `template`, `doc` and `body`")
    if mapping is None:
        return None
    if _is_spec(mapping):
        sink.error(
            "AGC420",
            f"`{name}` is a spec, and `use:` takes templates",
            _start(mapping),
            expected=f"a file with {listed(language.TEMPLATE_KEYS)}",
            fix="`agentc templates show eto/rounds` prints a template",
        )
        return None
    keys = read_keys(mapping, language.TEMPLATE_KEYS, place, sink, outline=True)
    makes = _makes(keys.get("template"), mapping, place, sink)
    doc = keys.get("doc")
    body = keys.get("body")
    if body is None or not isinstance(body.value, MappingNode):
        sink.error(
            "AGC420",
            f"{place.what} has no `body`",
            _start(mapping) if body is None else body.value.span,
            expected="a mapping: what stands in the place of `use`",
        )
        return None
    if makes is None:
        return None
    text = doc.value if doc is not None else None
    if not isinstance(text, Unknown) and not (isinstance(text, Scalar) and text.text.strip()):
        sink.error("AGC420", f"{place.what} has no `doc`", _start(mapping))
    return Template(
        name=name,
        makes=makes,
        doc=" ".join(doc.value.text.split()) if doc and isinstance(doc.value, Scalar) else "",
        params=_params(keys.get("params"), sink),
        body=body.value,
        source=source,
    )


def _is_spec(mapping: MappingNode) -> bool:
    keys = {entry.key.text for entry in mapping.entries}
    own = {"stages", "models", "environments", "name"}
    return not keys & {"template", "body"} and len(keys & own) >= 2


def _makes(entry: Entry | None, mapping: MappingNode, place: Place, sink: Sink) -> str | None:
    expected = f"one of {listed(language.TEMPLATES, 20)}"
    if entry is None:
        sink.error(
            "AGC420",
            f"{place.what} does not say what it makes",
            _start(mapping),
            expected=f"`template:` with {expected}",
        )
        return None
    node = entry.value
    if isinstance(node, Unknown):
        return None
    if isinstance(node, Scalar) and node.text in language.TEMPLATES:
        return node.text
    sink.error(
        "AGC420",
        f"a template cannot make {described(node)}",
        node.span,
        expected=expected,
        fix=did_you_mean(node.text, language.TEMPLATES) if isinstance(node, Scalar) else None,
    )
    return None


def _params(entry: Entry | None, sink: Sink) -> dict[str, TemplateParam]:
    found: dict[str, TemplateParam] = {}
    for name, declared in read_params(entry, sink).items():
        if name in language.RESERVED_NAMES:
            sink.error(
                "AGC309",
                f"no parameter can be called `{name}`",
                declared.name.span,
                notes=("expressions use this word themselves",),
            )
            continue
        rules = param_rules(declared, sink)
        default, doc = declared.settings.get("default"), declared.settings.get("doc")
        found[name] = TemplateParam(
            name=name,
            rules={} if rules is None else rules,
            default=None if default is None else default.value,
            doc=doc.value.text if doc is not None and isinstance(doc.value, Scalar) else None,
        )
    return found


def _start(mapping: MappingNode) -> Span:
    return mapping.entries[0].key.span if mapping.entries else mapping.span
