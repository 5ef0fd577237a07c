"""Templates: fragments of specs with typed parameters, one YAML file each, and TemplateLibrary,
which finds them by the name that `use:` gives.

    agentc: 1
    template: stage
    doc: What it does.
    params:
      data: {type: str, doc: "The stage whose rows are trained on."}
    body:
      kind: sft
      data: "{{ data }}"

Its expressions see its parameters and `round`, nothing else, so a template means the same in
every spec. `eto/dpo` is a file of those that ship with agentc; `./mine.yaml` lies beside the
spec (or the template that uses it) and may not lead out of the spec's folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from agentc import resources
from agentc.diagnostics.diagnostic import Source, Span
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.kinds.field import Json
from agentc.schema import language
from agentc.schema.keys import Place, as_mapping, read_keys
from agentc.schema.param_rules import param_rules
from agentc.schema.structure import read_params
from agentc.source.files import is_file
from agentc.source.load import load_file
from agentc.source.tree import Entry, Node, Scalar, Unknown, described, shortened
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
            fix="`agentc init --templates eto/rounds` prints a template",
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
            expected="a mapping: what is in the place of `use`",
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


_SUFFIX = ".yaml"
_NOT_TEMPLATES = "profiles"


def shipped_names() -> tuple[str, ...]:
    """Names of the templates that ship with agentc, sorted."""
    folder = resources.templates()
    paths = (path.relative_to(folder) for path in sorted(folder.rglob(f"*{_SUFFIX}")))
    return tuple(
        path.with_suffix("").as_posix() for path in paths if path.parts[0] != _NOT_TEMPLATES
    )


@cache  # the published schema asks for them at each place that takes `use:`
def shipped_templates() -> tuple[Template, ...]:
    """The templates that ship with agentc, by name; those that are broken are left out."""
    library = TemplateLibrary(Path(), Sink())
    start = Span(Source("", ""), 1, 1, 1, 1)
    found = (library.find(Scalar(name, False, start)) for name in library.shipped())
    return tuple(template for template in found if template is not None)


@dataclass(slots=True)
class TemplateLibrary:
    """Templates for one spec. Each file is read once; `files` are those that were read, by the
    name that is shown for them."""

    directory: Path
    sink: Sink
    files: dict[str, Path] = field(default_factory=dict)
    _known: dict[Path, Template | None] = field(default_factory=dict)
    _found: dict[tuple[str, str], Template] = field(default_factory=dict)
    _shipped: list[str] = field(default_factory=list)

    def shipped(self) -> list[str]:
        """Names of the templates that ship with agentc: the folder is walked once for a spec."""
        if not self._shipped:
            self._shipped.extend(shipped_names())
        return self._shipped

    def find(self, written: Scalar) -> Template | None:
        """The template that a `use:` names, or None (reported)."""
        # What a name means depends on the file it stands in; a look at the folders costs 0.1 ms.
        named = (written.span.source.name, written.text)
        if named in self._found:
            return self._found[named]
        found = self._find(written)
        if found is not None:
            self._found[named] = found
        return found

    def _find(self, written: Scalar) -> Template | None:
        name = written.text
        if name.startswith("."):
            return self._local(name, written)
        folder = resources.templates()
        path = folder / f"{name}{_SUFFIX}"
        names = self.shipped()
        if name not in names:
            beside = is_file(self.directory / f"{name.removesuffix(_SUFFIX)}{_SUFFIX}")
            self.sink.error(
                "AGC421",
                f"no template `{shortened(name, 80)}`",
                written.span,
                expected=f"one of {listed(names, 20)}; or a file beside the spec, as `./NAME.yaml`",
                fix=f"write `./{name.removesuffix(_SUFFIX)}{_SUFFIX}`"
                if beside
                else did_you_mean(name, names),
            )
            return None
        return self._read(path, name, f"templates/{name}{_SUFFIX}")

    def _local(self, name: str, written: Scalar) -> Template | None:
        base = self.files.get(written.span.source.name)
        start = self.directory if base is None else base.parent
        path = start / name
        try:
            inside = path.resolve().is_relative_to(self.directory.resolve())
        except (OSError, ValueError, RuntimeError):
            inside = False
        if not inside:
            self.sink.error(
                "AGC422",
                f"the template `{shortened(name, 80)}` lies outside of the spec's folder",
                written.span,
                fix="copy it into the spec's folder",
            )
            return None
        if not is_file(path):
            near = sorted(
                f"./{each.relative_to(start).as_posix()}" for each in start.glob(f"*{_SUFFIX}")
            )
            self.sink.error(
                "AGC421",
                f"there is no file `{shortened(name, 80)}`",
                written.span,
                notes=("a path starts at the file that uses the template",),
                fix=did_you_mean(name, near),
            )
            return None
        shown = Path(written.span.source.name).parent / name
        return self._read(path, name, shown.as_posix())

    def _read(self, path: Path, name: str, shown: str) -> Template | None:
        if path not in self._known:
            source, root = load_file(path, self.sink, shown=shown)
            self.files[shown] = path
            self._known[path] = None
            if root is not None:
                found = read_template(name, source, root, self.sink)
                self._known[path] = found
        return self._known[path]
