"""TemplateLibrary: finds templates by the name that `use:` gives.

`eto/dpo` is a file of those that ship with agentc; `./mine.yaml` lies beside the spec (or the
template that uses it) and may not lead out of the spec's folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from agentc import resources
from agentc.diagnostics.diagnostic import Source, Span
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.source.files import is_file
from agentc.source.load import load_file
from agentc.source.tree import Scalar, shortened
from agentc.templates.template import Template, read_template

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
        found = self._look_up(written)
        if found is not None:
            self._found[named] = found
        return found

    def _look_up(self, written: Scalar) -> Template | None:
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
