"""`agentc explain`: a name of the spec language, a diagnostic code, or how a stage was understood.
`agentc templates`: those that ship with agentc. `agentc schema`: the language's JSON Schema."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import (
    add_format_argument,
    add_spec_arguments,
    compile_typed,
    names_spec,
    show_found,
    wants_colour,
)
from agentc.cli.parser import Command
from agentc.exit_codes import EXIT_NOT_FOUND, EXIT_SPEC, EXIT_USAGE
from agentc.text import aligned, terminal_width

if TYPE_CHECKING:
    from agentc.backend_api import StageBackend
    from agentc.compilation import Compilation
    from agentc.ir.module import Stage
    from agentc.kinds.field import Field, Json
    from agentc.templates.library import Template, TemplateParam


_EXPLAIN_HELP = "explain a kind, a setting, a backend, a metric, a code, or a stage of a spec"
_CODE = re.compile(r"(?i)(?:AGC)?(\d+)")


def _configure_explain(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "name",
        metavar="NAME|CODE|STAGE",
        help="dpo, dpo.beta, textcraft, trl.sft, pass_at, AGC602; with SPEC also a stage",
    )
    add_spec_arguments(parser, optional=True)
    add_format_argument(parser, "json: an object for each stage, name or code, one a line")


def _explain(arguments: argparse.Namespace) -> int:
    """0; 1 when the spec has no such thing because it has errors; 2 for a spec without a stage; 5
    for an unknown name."""
    if arguments.spec is not None and names_spec(arguments.name):
        # `agentc why` takes the spec first: nobody should have to remember which is which.
        arguments.name, arguments.spec = str(arguments.spec), Path(arguments.name)
    number = _CODE.fullmatch(arguments.name)  # no stage is called like a number
    if number is not None:
        return _explain_code(f"AGC{number[1]}", arguments.format)
    if arguments.spec is not None:
        return _explain_stage(arguments)
    if names_spec(arguments.name):
        print(
            f"agentc: name a stage and its spec: agentc explain STAGE {arguments.name}",
            file=sys.stderr,
        )
        return EXIT_USAGE
    return _explain_name(arguments.name, arguments.format)


def _explain_name(name: str, form: str) -> int:
    from agentc.backend_api import load_backends
    from agentc.diagnostics.suggest import did_you_mean
    from agentc.reference.topics import names, topics

    table = load_backends()
    found = topics(name, table, terminal_width(sys.stdout))
    if not found:
        hint = did_you_mean(name, names(table)) or (
            "of a stage, name the spec too: agentc explain STAGE SPEC"
        )
        print(f"agentc: nothing is called `{name}`; {hint}", file=sys.stderr)
        return EXIT_NOT_FOUND
    for number, topic in enumerate(found):
        if form == "json":
            print(json.dumps({"name": topic.name, "text": list(topic.lines)}, ensure_ascii=False))
        else:
            print("\n".join(["", *topic.lines] if number else topic.lines))
    return 0


def _explain_code(name: str, form: str) -> int:
    from agentc.backend_api import load_backends
    from agentc.diagnostics.suggest import did_you_mean
    from agentc.reference.codes import CODES, code_named
    from agentc.reference.error_pages import error_text

    code = code_named(name)
    if code is None:
        hint = did_you_mean(name, [known.code for known in CODES])
        print(f"agentc: there is no code {name}{f'; {hint}' if hint else ''}", file=sys.stderr)
        return EXIT_NOT_FOUND
    if form == "json":
        about = {"code": code.code, "title": code.title, "explanation": code.explanation}
        print(json.dumps(about, ensure_ascii=False))
        return 0
    print(error_text(code, load_backends(), colour=wants_colour(sys.stdout)), end="")
    return 0


def _explain_stage(arguments: argparse.Namespace) -> int:
    from agentc.backend_api import StageBackend, load_backends
    from agentc.plan.stage_names import matching_names, nearest

    table = load_backends()
    compiled = compile_typed(arguments, table)
    stages = {} if compiled.module is None else compiled.module.stages
    found = [stages[name] for name in matching_names(arguments.name, stages)]
    show_found(compiled, arguments)
    if not found:
        if compiled.has_errors:
            return EXIT_SPEC
        hint = nearest(arguments.name, stages)
        print(f"agentc: the spec has no stage `{arguments.name}`; {hint}", file=sys.stderr)
        return EXIT_NOT_FOUND
    for stage in found:
        backend = table.backends.get(stage.backend)
        if not isinstance(backend, StageBackend):
            continue
        if arguments.format == "json":
            print(json.dumps(_document(stage, backend, compiled), ensure_ascii=False))
        else:
            print("\n".join(_lines(stage, backend, compiled)))
    return EXIT_SPEC if compiled.has_errors else 0


def _lines(stage: Stage, backend: StageBackend, compiled: Compilation) -> Iterator[str]:
    from agentc.kinds import kind_named
    from agentc.searching.stopping import rule_text

    kind = kind_named(stage.kind)
    assert kind is not None
    yield f"{stage.id}: {kind.doc}"
    yield f"  from {_place(stage)}"
    choice = next((c for c in compiled.choices if c.stage == stage.id), None)
    how = "" if choice is None else f" ({choice.reason})"
    yield f"  backend: {backend.id}, version {backend.version}{how}"
    yield f"    {backend.doc}"
    for name, reason in () if choice is None else choice.rejected:
        yield f"    not {name}: {reason}"
    for each in compiled.module.stopping if compiled.module is not None else ():
        if any(stage.id in stages for stages in each.rounds):
            yield f"  rounds: up to {each.most}, until {rule_text(each.rule)}"
    for role, producers in stage.inputs.items():
        yield f"  {role}: {', '.join(producers)}"
    for section, name in stage.uses.items():
        yield f"  {section}: {name}{_where(section, stage, compiled)}"
    yield "  settings:"
    shown = [(path, json.dumps(value, ensure_ascii=False), note) for path, value, note
             in _settings(stage, backend)]  # fmt: skip
    yield from aligned(shown, indent="    ")
    yield ""


def _document(stage: Stage, backend: StageBackend, compiled: Compilation) -> dict[str, Json]:
    """What `_lines` says, as data."""
    choice = next((c for c in compiled.choices if c.stage == stage.id), None)
    settings = _settings(stage, backend)
    return {
        "stage": stage.id,
        "kind": stage.kind,
        "from": _place(stage),
        "backend": backend.id,
        "version": backend.version,
        "reason": None if choice is None else choice.reason,
        "not": {} if choice is None else dict(choice.rejected),
        "inputs": {role: list(producers) for role, producers in stage.inputs.items()},
        "uses": dict(stage.uses),
        "settings": {path: {"value": value, "from": note} for path, value, note in settings},
    }


def _settings(stage: Stage, backend: StageBackend) -> list[tuple[str, Json, str]]:
    """Path, effective value and origin of all that the stage may set."""
    from agentc.backend_api.honoured import honoured_fields
    from agentc.kinds import kind_named

    kind = kind_named(stage.kind)
    assert kind is not None
    read = honoured_fields(backend)
    return [
        row
        for field in (*kind.fields, *backend.options)
        for row in _setting(field, stage, field.name in read)
    ]


def _where(section: str, stage: Stage, compiled: Compilation) -> str:
    """Where a stage's environment is: a server of its jobs, or their own process."""
    jobs = () if compiled.plan is None else compiled.plan.jobs
    leases = (job.lease(section) for job in jobs if job.stage == stage.id)
    ports = {lease.draft.port for lease in leases if lease is not None}
    if section != "environment" or not ports:
        return ""
    return ", in the job's process" if ports == {"inside"} else ", behind a server"


def _place(stage: Stage) -> str:
    span = stage.origin.span
    steps = "".join(f", {step}" for step in stage.origin.steps)
    return f"{span.source.name}:{span.line}{steps}"


def _setting(field: Field, stage: Stage, read: bool) -> Iterator[tuple[str, Json, str]]:
    """Rows of path, effective value and origin: where the spec sets it, or `default`."""
    from agentc.backend_api import OptionView
    from agentc.ir.module import stage_span
    from agentc.passes.lowering.module_context import stage_values

    values = stage_values(stage.body)
    view = OptionView(table=(field,), values=values)
    given = {path for path in view.given() if path.split(".")[0] == field.name}
    whole = view.get(field.name)
    leaves = [f"{field.name}.{sub.name}" for sub in field.fields] if whole is not None else []
    for path in leaves or [field.name]:
        span = stage_span(stage, path)
        note = f"{span.source.name}:{span.line}" if path in given else "default"
        note += "" if field.identity == "semantic" else f" ({field.identity})"
        note += "" if read else f", which {stage.backend} does not read"
        yield path, view.get(path), note


_LIST_HELP = "list kinds of stages, backends, environments, servers, metrics or types of artifacts"


def _configure_list(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    from agentc.reference.topics import LISTS

    parser.add_argument("what", choices=LISTS)
    add_format_argument(parser, "json: an object for each, one a line")


def _list_names(arguments: argparse.Namespace) -> int:
    """0."""
    from agentc.backend_api import load_backends
    from agentc.reference.topics import rows

    found = rows(arguments.what, load_backends())
    if arguments.format == "json":
        for name, doc in found:
            print(json.dumps({"name": name, "doc": doc}, ensure_ascii=False))
        return 0
    print("\n".join(aligned([(name, _sentence(doc)) for name, doc in found])))
    print(f"`agentc explain NAME` says more of one, such as {found[0][0]}")
    return 0


_TEMPLATES_HELP = "list the templates that specs can `use:`, or show one with its parameters"


def _configure_templates(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    actions.add_parser("ls", help="every template that ships with agentc (default)")
    show = actions.add_parser("show", help="what one makes, its parameters, and its text")
    show.add_argument("name", metavar="NAME", help="such as eto/rounds, or a file as ./mine.yaml")


def _templates(arguments: argparse.Namespace) -> int:
    """0; 1 when the template is broken, 5 when there is none of that name."""
    if arguments.action == "show":
        return _show(arguments.name)
    return _list()


def _list() -> int:
    from agentc.templates.library import shipped_names

    found = [(name, _read(name)) for name in shipped_names()]
    rows = [(name, each.makes, _sentence(each.doc)) for name, each in found if each]
    print("\n".join(aligned(rows)))
    return 0


def _show(name: str) -> int:
    from agentc.templates.library import shipped_names

    if not name.startswith(".") and name not in shipped_names():
        from agentc.diagnostics.suggest import did_you_mean

        hint = did_you_mean(name, shipped_names()) or "`agentc templates` lists them"
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


def _sentence(text: str) -> str:
    first = text.split(". ")[0].rstrip(".")
    return first if len(first) <= 100 else first[:97] + "..."


_SCHEMA_HELP = "print the JSON Schema of the spec language, for completion in editors"


def _configure_schema(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--kind", metavar="KIND", help="only the stages of one kind")
    which.add_argument("--backend", metavar="ID", help="only the settings of one backend's own")
    which.add_argument(
        "--draft-07", action="store_true", help="the whole in draft-07, as SchemaStore asks for it"
    )
    parser.epilog = (
        "For completion in an editor: `agentc schema > agentc.schema.json`, and at the top of a\n"
        "spec `# yaml-language-server: $schema=agentc.schema.json`. docs/editors.md says more."
    )


def _schema(arguments: argparse.Namespace) -> int:
    """0, or 5 when the kind or backend does not exist."""
    from agentc.backend_api import StageBackend, entry_fields, load_backends
    from agentc.diagnostics.suggest import did_you_mean, listed
    from agentc.kinds import KINDS, kind_named
    from agentc.published.json_schema import fields_schema, kind_schema, language_schema

    table = load_backends()
    if arguments.kind is not None:
        kind = kind_named(arguments.kind)
        if kind is None:
            names = [each.name for each in KINDS]
            hint = did_you_mean(arguments.kind, names) or f"kinds: {listed(names, 40)}"
            print(f"agentc: no stage kind `{arguments.kind}`; {hint}", file=sys.stderr)
            return EXIT_NOT_FOUND
        schema = kind_schema(kind, table)
    elif arguments.backend is not None:
        backend = table.backends.get(arguments.backend)
        if backend is None:
            ids = sorted(table.backends)
            hint = did_you_mean(arguments.backend, ids) or f"backends: {listed(ids, 40)}"
            print(f"agentc: no backend `{arguments.backend}`; {hint}", file=sys.stderr)
            return EXIT_NOT_FOUND
        own = backend.options if isinstance(backend, StageBackend) else entry_fields(backend)
        schema = fields_schema(f"settings of {backend.id}", own)
    else:
        schema = language_schema(table)
        if arguments.draft_07:
            from agentc.published.older_dialect import in_draft_07

            schema = in_draft_07(schema)
    print(json.dumps(schema, indent=2, ensure_ascii=False))
    return 0


COMMANDS = {
    "explain": Command(_EXPLAIN_HELP, _configure_explain, _explain),
    "list": Command(_LIST_HELP, _configure_list, _list_names),
    "templates": Command(_TEMPLATES_HELP, _configure_templates, _templates),
    "schema": Command(_SCHEMA_HELP, _configure_schema, _schema),
}
