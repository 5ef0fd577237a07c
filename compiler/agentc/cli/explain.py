"""`agentc explain`: a name of the spec language, a diagnostic code, or how a stage was understood;
with `--list`, the names of the language."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import (
    add_format_argument,
    add_spec_arguments,
    compile_typed,
    names_spec,
    print_diagnostics,
    spec_table,
    wants_colour,
)
from agentc.exit_codes import EXIT_NOT_FOUND, EXIT_SPEC
from agentc.text import aligned, terminal_width

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable, StageBackend
    from agentc.compilation import Compilation
    from agentc.ir.module import Stage
    from agentc.kinds.field import Field, Json


HELP = "explain a kind, a setting, a backend, a metric, a code, or a stage of a spec"
_CODE = re.compile(r"(?i)(?:AGC)?(\d+)")


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    from agentc.reference.topics import LISTS

    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME|CODE|STAGE",
        help="dpo, dpo.beta, textcraft, trl.sft, pass_at, AGC602, a spec; with SPEC also a stage, "
        "or a backend next to the spec",
    )
    add_spec_arguments(parser, optional=True)
    parser.add_argument(
        "--list", choices=LISTS, metavar="WHAT", help=f"instead: list {', '.join(LISTS)}"
    )
    add_format_argument(parser, "json: an object for each stage, name or code, one a line")


def execute(arguments: argparse.Namespace) -> int:
    """0; 1 when the spec has no such thing because it has errors; 2 for nothing to explain; 5 for
    an unknown name."""
    if arguments.list is not None:
        if arguments.name is not None or arguments.params or arguments.scale is not None:
            arguments.parser.error("--list takes neither a name nor a spec")
        return _list_names(arguments)
    if arguments.name is None:
        arguments.parser.error("name what to explain (dpo, dpo.beta, AGC602), or --list kinds")
    if arguments.spec is not None and names_spec(arguments.name):
        # `agentc why` takes the spec first: nobody should have to remember which is which.
        arguments.name, arguments.spec = str(arguments.spec), Path(arguments.name)
    number = _CODE.fullmatch(arguments.name)  # no stage is called like a number
    if number is not None:
        return _explain_code(f"AGC{number[1]}", arguments.format)
    if arguments.spec is not None:
        return _explain_stage(arguments)
    if names_spec(arguments.name):
        arguments.spec = Path(arguments.name)
        return _explain_spec(arguments)
    return _explain_name(arguments.name, arguments.format)


def _explain_name(name: str, form: str) -> int:
    from agentc.backend_api import load_backends
    from agentc.diagnostics.suggest import did_you_mean
    from agentc.reference.topics import names

    table = load_backends()
    if not _print_topics(name, table, form):
        hint = did_you_mean(name, names(table)) or (
            "of a stage, name the spec too: agentc explain STAGE SPEC"
        )
        print(f"agentc: nothing is called `{name}`; {hint}", file=sys.stderr)
        return EXIT_NOT_FOUND
    return 0


def _print_topics(name: str, table: BackendTable, form: str) -> bool:
    """Whether the name means anything."""
    from agentc.reference.topics import topics

    found = topics(name, table, terminal_width(sys.stdout))
    for number, topic in enumerate(found):
        if form == "json":
            print(json.dumps({"name": topic.name, "text": list(topic.lines)}, ensure_ascii=False))
        else:
            print("\n".join(["", *topic.lines] if number else topic.lines))
    return bool(found)


def _explain_spec(arguments: argparse.Namespace) -> int:
    from agentc.backend_api import load_backends
    from agentc.reference.spec_overview import document, overview

    table = load_backends()
    compiled = compile_typed(arguments, table)
    print_diagnostics(compiled, arguments)
    if compiled.has_errors or compiled.module is None:
        return EXIT_SPEC
    table = spec_table(arguments, table)
    if arguments.format == "json":
        print(json.dumps(document(compiled, table), ensure_ascii=False))
    else:
        print("\n".join(overview(compiled, table, terminal_width(sys.stdout))))
        print(f"\n`agentc explain STAGE {arguments.spec}` shows the settings of a stage")
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
    from agentc.plan.stage_names import matching_names, nearest, of_all_cells

    table = load_backends()
    compiled = compile_typed(arguments, table)
    stages = {} if compiled.module is None else compiled.module.stages
    found = [stages[name] for name in matching_names(arguments.name, stages)]
    print_diagnostics(compiled, arguments)
    table = spec_table(arguments, table)
    if not found:
        named = _print_topics(arguments.name, table, arguments.format)
        if compiled.has_errors:
            return EXIT_SPEC
        if named:
            return 0
        hint = nearest(arguments.name, stages)
        print(f"agentc: the spec has no stage `{arguments.name}`; {hint}", file=sys.stderr)
        return EXIT_NOT_FOUND
    cells: dict[str, list[tuple[Stage, StageBackend]]] = {}
    for stage in found:
        backend = table.backends.get(stage.backend)
        if not isinstance(backend, StageBackend):
            continue
        if arguments.format == "json":
            print(json.dumps(_document(stage, backend, compiled), ensure_ascii=False))
        else:
            cells.setdefault(of_all_cells(stage.id), []).append((stage, backend))
    for alike in cells.values():
        print("\n".join(_folded_lines(alike, compiled)))
    return EXIT_SPEC if compiled.has_errors else 0


def _folded_lines(
    cells: Sequence[tuple[Stage, StageBackend]], compiled: Compilation
) -> Iterator[str]:
    """The first of a stage's cells in full; of each other one what differs in it."""
    (first, backend), *others = cells
    yield from _lines(first, backend, compiled)
    same: dict[tuple[str, ...], list[str]] = {}
    for stage, own in others:
        same.setdefault(_differences((first, backend), (stage, own), compiled), []).append(stage.id)
    for differences, names in same.items():
        but = f", except {'; '.join(differences)}" if differences else ""
        yield f"{', '.join(names)}: as {first.id}{but}"
    if others:
        yield ""


def _differences(
    first: tuple[Stage, StageBackend], other: tuple[Stage, StageBackend], compiled: Compilation
) -> tuple[str, ...]:
    """What of a stage is not as in another cell, apart from the names of the cells."""
    from agentc.plan.stage_names import cell_in

    heads = [
        [
            line.strip().replace(f"@{cell_in(stage.id)}", "@*")
            for line in _head(stage, own, compiled)
        ]
        for stage, own in (first, other)
    ]
    values = {path: value for path, value, _ in _settings(*first)}
    return (
        *(line for line in heads[1] if line not in heads[0] and not line.startswith("from ")),
        *(
            f"{path} {json.dumps(value, ensure_ascii=False)}"
            for path, value, _ in _settings(*other)
            if path not in values or values[path] != value
        ),
    )


def _lines(stage: Stage, backend: StageBackend, compiled: Compilation) -> Iterator[str]:
    yield from _head(stage, backend, compiled)
    yield "  settings:"
    shown = [(path, json.dumps(value, ensure_ascii=False), note) for path, value, note
             in _settings(stage, backend)]  # fmt: skip
    yield from aligned(shown, indent="    ")
    yield ""


def _head(stage: Stage, backend: StageBackend, compiled: Compilation) -> Iterator[str]:
    """All but the settings."""
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
    given = {path for path in view.set_paths() if path.split(".")[0] == field.name}
    whole = view.get(field.name)
    leaves = [f"{field.name}.{sub.name}" for sub in field.fields] if whole is not None else []
    for path in leaves or [field.name]:
        span = stage_span(stage, path)
        note = f"{span.source.name}:{span.line}" if path in given else "default"
        note += "" if field.identity == "semantic" else f" ({field.identity})"
        note += "" if read else f", which {stage.backend} does not read"
        yield path, view.get(path), note


def _list_names(arguments: argparse.Namespace) -> int:
    """0."""
    from agentc.backend_api import load_backends
    from agentc.cli.templates import first_sentence
    from agentc.reference.topics import rows

    found = rows(arguments.list, load_backends())
    if arguments.format == "json":
        for name, doc in found:
            print(json.dumps({"name": name, "doc": doc}, ensure_ascii=False))
        return 0
    print("\n".join(aligned([(name, first_sentence(doc)) for name, doc in found])))
    print(f"`agentc explain NAME` says more of one, such as {found[0][0]}")
    return 0
