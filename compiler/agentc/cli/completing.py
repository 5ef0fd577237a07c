"""Tab completion: main() calls `complete` where a shell asks (`agentc dev completion` sets it up).

argcomplete reads the line and the options of our parser; the words that only agentc knows come
from specs and stores. Nothing of this is imported when a command runs.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import argcomplete
from argcomplete.finders import safe_actions
from argcomplete.lexers import split_line

from agentc.cli import COMMANDS
from agentc.cli.arguments import Param, names_spec
from agentc.cli.parser import OnceAction
from agentc.store.paths import FULL


def complete(
    parser_of: Callable[[Sequence[str]], argparse.ArgumentParser],
    answer: Callable[..., None] = argcomplete.autocomplete,
) -> None:
    """Write what may stand at the cursor to where the shell reads it; ends the process there."""
    line, point = os.environ["COMP_LINE"], int(os.environ["COMP_POINT"])
    _, _, _, before, _ = split_line(line, point)
    # The program may stand behind an interpreter: `python -m agentc`.
    words = before[int(os.environ["_ARGCOMPLETE"]) :]
    typed = next((word for word in words if not word.startswith("-")), None)
    names = (typed,) if typed in COMMANDS else COMMANDS
    safe_actions.update((Param, OnceAction))
    answer(
        parser_of([name for name in names if name is not None]),
        always_complete_options=False,
        default_completer=_Words(),
    )


class _Words(argcomplete.completers.BaseCompleter):
    """Asked for each argument that has no `choices`."""

    def __call__(
        self,
        *,
        prefix: str,
        action: argparse.Action,
        parser: argparse.ArgumentParser,
        parsed_args: argparse.Namespace,
    ) -> Mapping[str, str]:
        """Words with what they mean; files have no meaning."""
        found = words_for(parser.prog.split()[1:], action, parsed_args, prefix)
        files = {}
        if found.files is not None:
            listed = argcomplete.completers.FilesCompleter(found.files)
            files = dict.fromkeys(
                listed(prefix=prefix, action=action, parser=parser, parsed_args=parsed_args), ""
            )
        return {**found.words, **files}


_SPECS = ("yaml", "yml")
_FILES = frozenset({"CONFIG", "DIR", "FILE", "FOLDER", "NAME|DIR", "PLACE"})
"""Metavars of arguments that take any file or folder."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Words with their meaning in a line (or nothing), and the endings of files that may stand
    there too: none of them for None, every file for ()."""

    words: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] | None = None


def words_for(
    command: Sequence[str], action: argparse.Action, typed: argparse.Namespace, prefix: str
) -> Candidates:
    """What may stand for `action` of `command` (`["store", "ls"]`), where `typed` holds what stands
    before it."""
    spec = _spec_of(typed)
    match (command[0] if command else "", str(action.metavar or action.dest)):
        case "why" | "logs", "NAME" if action.dest == "names":
            return Candidates(_stages(spec, typed), _SPECS if spec is None else None)
        case "init", "SPEC":
            return Candidates(_shipped_specs())
        case "diff", "A" | "B":
            return Candidates(_runs(typed), _SPECS)
        case "explain", "NAME|CODE|STAGE" if spec is None:
            return Candidates(_codes() if prefix[:2] in ("A", "AG") else _explained(), _SPECS)
        case _, "NAME|CODE|STAGE" | "STAGE":
            return Candidates(_stages(spec, typed))
        case _, "NAME=VALUE" if action.dest == "params":
            return Candidates(_params(spec, prefix))
        case _, "NAME" if action.dest in ("scale", "scales"):
            scales = _scales(spec)
            whole = {FULL: "the spec as it is written"} if scales else {}
            return Candidates(whole | dict.fromkeys(scales, ""))
        case "init", "NAME" if action.dest == "templates":
            return Candidates(_templates(), ())
        case "data", "NAME":
            return Candidates(_data_sets())
        case "serve", "NAME":
            return Candidates(_environments(spec))
        case _, "NAME" | "RUN" if "name" in action.dest or action.dest in ("run", "forget"):
            return Candidates(_runs(typed))
        case _, "NAME|SPEC":
            return Candidates(_runs(typed), _SPECS)
        case _, "SPEC":
            return Candidates(files=_SPECS)
        case _, "KIND" | "kind":
            return Candidates(_kinds())
        case _, "ID":
            return Candidates(_backends())
        case _, metavar if metavar in _FILES:
            return Candidates(files=())
    return Candidates()


def _spec_of(typed: argparse.Namespace) -> Path | None:
    """The spec among what was typed, if there is one: commands keep theirs under several names."""
    for name in ("spec", "specs", "name", "names", "run", "second", "first"):
        value = getattr(typed, name, None)
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, (str, Path)) and names_spec(str(word)):
                return Path(word).expanduser()
    return None


def _params(spec: Path | None, prefix: str) -> dict[str, str]:
    """`seed=` with its doc; behind the `=`, the values of one that has few."""
    from agentc.source.tree import Mapping as Table
    from agentc.source.tree import Sequence as Items
    from agentc.source.tree import text_of

    name, chosen, _ = prefix.partition("=")
    found: dict[str, str] = {}
    for param, fields in _section(spec, "params").items():
        said = {e.key.text: e.value for e in fields.entries} if isinstance(fields, Table) else {}
        doc = text_of(said["doc"]) if "doc" in said else None
        if not chosen:
            found[f"{param}="] = " ".join((doc or "").split())
        elif param == name:
            choices = said.get("choices")
            values = [text_of(n) for n in choices.items] if isinstance(choices, Items) else []
            if "type" in said and text_of(said["type"]) == "bool":
                values = ["true", "false"]
            found |= {f"{param}={value}": "" for value in values if value is not None}
    return found


def _scales(spec: Path | None) -> tuple[str, ...]:
    return tuple(_section(spec, "scales"))


def _section(spec: Path | None, name: str) -> dict[str, object]:
    """A table of the spec's text, as it is written."""
    from agentc.diagnostics.sink import Sink
    from agentc.source.files import is_file
    from agentc.source.load import load_file
    from agentc.source.tree import Mapping as Table

    if spec is None or not is_file(spec):
        return {}
    _, root = load_file(spec, Sink())
    entry = root.find(name) if isinstance(root, Table) else None
    table = None if entry is None else entry.value
    return {e.key.text: e.value for e in table.entries} if isinstance(table, Table) else {}


def _stages(spec: Path | None, typed: argparse.Namespace) -> dict[str, str]:
    """Stages of the spec, by its front end alone, or else of the run that is meant; without their
    cells, which nobody has to type."""
    from agentc.plan.stage_names import without_cell

    names = _stages_of_run(typed) if spec is None else _stages_of_spec(spec, typed)
    return {without_cell(name): kind for name, kind in names.items()}


def _stages_of_spec(spec: Path, typed: argparse.Namespace) -> dict[str, str]:
    from agentc.backend_api import load_backends
    from agentc.diagnostics.sink import Sink
    from agentc.front.read_module import build_module
    from agentc.source.files import folder_of, is_file
    from agentc.source.load import load_file

    if not is_file(spec):
        return {}
    sink = Sink()
    source, root = load_file(spec, sink)
    given = getattr(typed, "params", None)
    _, module = build_module(
        source,
        root,
        given if isinstance(given, dict) else {},
        load_backends(),
        sink,
        directory=folder_of(spec),
        scale=getattr(typed, "scale", None),
    )
    return {} if module is None else {stage.id: stage.kind for stage in module.stages.values()}


def _stages_of_run(typed: argparse.Namespace) -> dict[str, str]:
    from agentc.plan.work import read_plan
    from agentc.store.paths import readable_store
    from agentc.store.run_history import list_runs

    with suppress(OSError, ValueError):
        wanted = getattr(typed, "run", None)
        for run in list_runs(readable_store(getattr(typed, "store", None))):
            if wanted in (None, run.label, run.variant.name):
                jobs = read_plan(run.folder.last_plan)["jobs"]
                return {str(job["stage"]): str(job.get("kind", "")) for job in jobs}
    return {}


def _runs(typed: argparse.Namespace) -> dict[str, str]:
    from agentc.store.paths import readable_store
    from agentc.store.run_history import list_runs

    try:
        runs = list_runs(readable_store(getattr(typed, "store", None)))
    except OSError:
        return {}
    names = {run.variant.name: "" for run in runs}
    return {**names, **{run.label: "" for run in runs}}


def _shipped_specs() -> dict[str, str]:
    from agentc.cli.init import shipped_specs

    return dict.fromkeys(shipped_specs(), "")


def _explained() -> dict[str, str]:
    """The names of the language, with what they are."""
    from agentc.backend_api import load_backends
    from agentc.kinds import KINDS
    from agentc.kinds.metric_names import METRIC_DOCS

    kinds = {kind.name: kind.doc for kind in KINDS}
    backends = {backend.id: backend.doc for backend in load_backends()}
    return {**kinds, **backends, **METRIC_DOCS, **_codes()}


def _codes() -> dict[str, str]:
    from agentc.reference.codes import CODES

    return {code.code: code.title for code in CODES}


def _templates() -> dict[str, str]:
    from agentc.templates.library import shipped_templates

    return {each.name: f"makes a {each.makes}" for each in shipped_templates()}


def _data_sets() -> dict[str, str]:
    from agentc.backend_api import load_backends
    from agentc.data_sets.acquire import declared_data_sets

    return dict.fromkeys(declared_data_sets(load_backends()), "")


def _environments(spec: Path | None) -> dict[str, str]:
    from agentc.backend_api import load_backends

    if spec is not None:
        return dict.fromkeys(_section(spec, "environments"), "")
    return {b.id.partition(".")[2]: "" for b in load_backends().environments()}


def _backends() -> dict[str, str]:
    from agentc.backend_api import load_backends

    return dict.fromkeys(sorted(load_backends().backends), "")


def _kinds() -> dict[str, str]:
    from agentc.kinds import KINDS

    return {kind.name: "" for kind in KINDS}
