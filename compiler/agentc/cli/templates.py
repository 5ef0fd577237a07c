"""`agentc init --templates [NAME]`: the templates that specs can `use:`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from agentc.exit_codes import EXIT_NOT_FOUND, EXIT_SPEC
from agentc.text import aligned

if TYPE_CHECKING:
    from agentc.templates.library import Template, TemplateParam


def list_templates() -> int:
    """0, with every template on standard output."""
    from agentc.templates.library import shipped_names

    found = [(name, _read(name)) for name in shipped_names()]
    rows = [(name, each.makes, first_sentence(each.doc)) for name, each in found if each]
    print("\n".join(aligned(rows)))
    return 0


def show_template(name: str) -> int:
    """0 with a template, its parameters and its text on standard output; 1 when it is broken, 5
    when there is none of that name."""
    from agentc.templates.library import shipped_names

    if not name.startswith(".") and name not in shipped_names():
        from agentc.diagnostics.suggest import did_you_mean

        hint = did_you_mean(name, shipped_names()) or "`agentc init --templates` lists them"
        print(f"agentc: there is no template `{name}`; {hint}", file=sys.stderr)
        return EXIT_NOT_FOUND
    template = _read(name)
    if template is None:
        return EXIT_SPEC
    print(f"{template.name}: makes a {template.makes}\n\n{template.doc}\n")
    if template.params:
        print("parameters (`with:`)")
        rows = [_param_row(param) for param in template.params.values()]
        print("\n".join(aligned(rows, indent="  ")) + "\n")
    print(template.source.text.rstrip())
    return 0


def _read(name: str) -> Template | None:
    """The template, or None with what is wrong on standard error."""
    from pathlib import Path

    from agentc.cli.arguments import show_diagnostics
    from agentc.diagnostics import Sink
    from agentc.diagnostics.diagnostic import Source, Span
    from agentc.source.tree import Scalar
    from agentc.templates.library import TemplateLibrary

    sink = Sink()
    typed = Source("the command line", name)
    at = Scalar(name, False, Span(typed, 1, 1, 1, len(name) + 1))
    template = TemplateLibrary(Path(), sink).find(at)
    show_diagnostics(sink.sorted())
    return None if sink.has_errors else template


def _param_row(param: TemplateParam) -> tuple[str, str, str, str]:
    from agentc.schema.coerce import as_json

    given = "required"
    if param.default is not None:
        given = f"default {json.dumps(as_json(param.default), ensure_ascii=False)}"
    return (param.name, str(param.rules.get("type", "value")), given, param.doc or "")


def first_sentence(text: str) -> str:
    """A text up to its first full stop, at most 100 characters."""
    first = text.split(". ")[0].rstrip(".")
    return first if len(first) <= 100 else first[:97] + "..."
