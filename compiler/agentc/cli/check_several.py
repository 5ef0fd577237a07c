"""`agentc check` of several specs: each as if it were alone, one line a spec, one answer for all.

`-p` and `--scale` reach the specs that declare what they name; it is an error when none does.
Neighbours: `check.py` takes one spec, `spec_files.py` finds several.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentc.cli.arguments import compile_typed, show_hint, wants_colour
from agentc.cli.spec_files import SpecFile, SpecFiles, find_spec_files
from agentc.diagnostics.diagnostic import Diagnostic
from agentc.diagnostics.render import counts_of, render_blocks, render_json_by_spec
from agentc.diagnostics.sink import Sink
from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.exit_codes import EXIT_DONE, EXIT_SPEC
from agentc.store.paths import FULL
from agentc.text import counted

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable


@dataclass(frozen=True, slots=True)
class _Checked:
    """A spec as typed, what was found in it, and how large it is."""

    name: str
    diagnostics: tuple[Diagnostic, ...]
    stages: int
    jobs: int

    @property
    def line(self) -> str:
        """What is said of it alone."""
        wrong = counts_of(d for d in self.diagnostics if d.severity == "error")
        warned = counts_of(d for d in self.diagnostics if d.severity == "warning")
        size = f"{counted(self.stages, 'stage')}, {counted(self.jobs, 'job')}"
        if wrong:
            return f"{self.name}: {', '.join(part for part in (wrong, warned) if part)}"
        return f"{self.name}: no errors{f', {warned}' if warned else ''}; {size}"


def check_several(arguments: argparse.Namespace, table: BackendTable) -> int:
    """Check what `arguments.specs` mean and print it in `arguments.format`; 0 when all are right,
    1 when one has errors."""
    sink = Sink()
    files = find_spec_files(arguments.specs, sink, only_specs=arguments.only_specs)
    _report_unknown(arguments, files.specs, sink)
    general = sink.sorted()
    is_text = arguments.format == "text"
    if is_text:
        _show(general)
    checked: list[_Checked] = []
    for file in files.specs:
        checked.append(_check(arguments, file, table))
        if is_text:
            _show(checked[-1].diagnostics)
            if not arguments.quiet:
                print(checked[-1].line, flush=True)
    found = [*general, *(d for each in checked for d in each.diagnostics)]
    if is_text:
        _summarise(found, checked, files, quiet=arguments.quiet)
    else:
        _print_document(arguments, general, checked, files)
    return EXIT_SPEC if any(d.severity == "error" for d in found) else EXIT_DONE


def _check(arguments: argparse.Namespace, file: SpecFile, table: BackendTable) -> _Checked:
    params, scale = arguments.params, arguments.scale
    if file.params is not None:
        params = {name: text for name, text in params.items() if name in file.params}
    if file.scales is not None and scale not in file.scales:
        scale = None
    alone = {**vars(arguments), "spec": file.path, "params": params, "scale": scale}
    compiled = compile_typed(argparse.Namespace(**alone), table, every_scale=True)
    return _Checked(
        name=str(file.path),
        diagnostics=compiled.diagnostics,
        stages=0 if compiled.module is None else len(compiled.module.stages),
        jobs=0 if compiled.plan is None else len(compiled.plan.jobs),
    )


def _report_unknown(arguments: argparse.Namespace, specs: Sequence[SpecFile], sink: Sink) -> None:
    """What was given for specs and none of them declares. Of one that cannot be read nothing is
    known, so then nothing is said."""
    params = [file.params for file in specs if file.params is not None]
    scales = [file.scales for file in specs if file.scales is not None]
    if not specs or len(params) < len(specs):
        return
    many = f"none of the {len(specs)} specs has" if len(specs) > 1 else "the spec has no"
    known = list(dict.fromkeys(name for names in params for name in names))
    for name in arguments.params:
        if name not in known:
            _report(sink, "AGC306", f"{many} a param `{name}`", name, known)
    known = list(dict.fromkeys(name for names in scales for name in names))
    if arguments.scale not in (None, FULL, *known):
        _report(sink, "AGC431", f"{many} a scale `{arguments.scale}`", arguments.scale, known)


def _report(sink: Sink, code: str, message: str, name: str, known: Sequence[str]) -> None:
    expected = f"one of {listed(known)}" if known else None
    sink.error(code, message, expected=expected, fix=did_you_mean(name, known))


def _show(diagnostics: Sequence[Diagnostic]) -> None:
    text = render_blocks(diagnostics, colour=wants_colour(sys.stderr))
    if text:
        print(text, file=sys.stderr, flush=True)


def _summarise(
    found: Sequence[Diagnostic], checked: Sequence[_Checked], files: SpecFiles, *, quiet: bool
) -> None:
    specs = counted(len(checked), "spec")
    if not quiet and files.passed_over:
        print(f"{counted(files.passed_over, 'file')} without a spec passed over", flush=True)
    if found:
        print(f"{counts_of(found)}; {specs} checked", file=sys.stderr)
        show_hint(found, sys.stderr)
    elif not quiet:
        print(f"{specs} checked: no errors")


def _print_document(
    arguments: argparse.Namespace,
    general: Sequence[Diagnostic],
    checked: Sequence[_Checked],
    files: SpecFiles,
) -> None:
    found: Iterable[tuple[str, Sequence[Diagnostic]]] = [
        (each.name, each.diagnostics) for each in checked
    ]
    if arguments.format == "json":
        print(render_json_by_spec(found, general, passed_over=files.passed_over))
        return
    from agentc.diagnostics.sarif import render_sarif
    from agentc.reference.codes import code_named

    # What belongs to no spec is shown at the first: sites drop results without a file.
    first = checked[0].name if checked else str(arguments.specs[0])
    print(render_sarif([(first, general), *found], code_named))
