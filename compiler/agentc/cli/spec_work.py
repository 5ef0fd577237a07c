"""What commands for a spec share: its compilation, shown; the work that a store leaves of it; and
rounds that stop, compiled as the experiment of fewer rounds (`agentc.searching.stopping`)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agentc.cli.arguments import compile_typed, print_diagnostics, show_diagnostics
from agentc.exit_codes import EXIT_SPEC, CommandError
from agentc.text import some

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.compilation import Compilation
    from agentc.plan.work import Work
    from agentc.runtime.store.layout import StoreLayout
    from agentc.searching.stopping import RoundsProgress


class RefusedSpecError(CommandError):
    """A command does not continue; without a message where the reason was shown."""

    def __init__(self, message: str = "", code: int = EXIT_SPEC) -> None:
        super().__init__(message)
        self.exit_code = code


class StoppedSpecError(CommandError):
    """What is left of a spec when its rounds stop has errors, which were shown."""

    exit_code = EXIT_SPEC


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecWork:
    """A spec against a store: its compilation, how far its rounds are, and what has to run."""

    compiled: Compilation
    rounds: tuple[RoundsProgress, ...]
    work: Work
    layout: StoreLayout


def compile_and_report(
    arguments: argparse.Namespace, table: BackendTable, form: str = "text"
) -> Compilation:
    """The compilation of the spec that was typed, whose diagnostics are shown, errors in this form.
    Raises RefusedSpecError where there are errors."""
    compiled = compile_typed(arguments, table)
    if compiled.plan is None:
        show_diagnostics(compiled.diagnostics, form)
        raise RefusedSpecError
    print_diagnostics(compiled, arguments)
    return compiled


def find_spec_work(
    arguments: argparse.Namespace,
    table: BackendTable,
    *,
    until: str | None = None,
    form: str = "text",
    open_layout: Callable[[str | None], StoreLayout] | None = None,
) -> SpecWork:
    """What a run of the spec that was typed would have to do, up to a stage. The store is only
    looked into, unless `open_layout` opens it. Raises RefusedSpecError, StoppedSpecError."""
    from agentc.plan.render import plan_document
    from agentc.plan.work import find_work
    from agentc.store.paths import readable_store

    compiled = compile_and_report(arguments, table, form)
    layout = (open_layout or readable_store)(arguments.store)
    compiled, rounds = with_stopped_rounds(compiled, arguments, table, layout)
    assert compiled.plan is not None
    work = find_work(plan_document(compiled.plan), layout, until)
    return SpecWork(compiled=compiled, rounds=rounds, work=work, layout=layout)


def with_stopped_rounds(
    compiled: Compilation,
    arguments: argparse.Namespace,
    table: BackendTable,
    layout: StoreLayout,
) -> tuple[Compilation, tuple[RoundsProgress, ...]]:
    """A compilation of the spec that was typed, with no more rounds than are to be done by what the
    store has measured, and how far each repeat with `until:` is. A round that ended may change
    what later rounds rest on, so that each is asked for with the ends of those before it.

    Raises StoppedSpecError."""
    from agentc.plan.render import plan_document
    from agentc.searching.stopping import rounds_progress

    first = compiled
    ends: dict[tuple[str, tuple[int, ...]], int] = {}
    while True:
        module, plan = compiled.module, compiled.plan
        if module is None or plan is None or not module.stopping:
            return compiled, ()
        so_far = rounds_progress(plan_document(plan), layout)
        new = {
            (each.repeat, cell): stop.after
            for each, known in zip(module.stopping, so_far, strict=True)
            if (stop := known.stop) is not None and stop.after < known.planned
            for cell in each.cells
        }
        if not new:
            # What there is to say of the spec was said of all of its rounds.
            return replace(compiled, diagnostics=first.diagnostics), so_far
        ends |= new
        compiled = compile_typed(arguments, table, references=first.references, ends=ends)
        if compiled.plan is None:
            names = some(f"`{name}` after {last}" for (name, _), last in ends.items())
            print(f"agentc: errors of the spec where rounds stop, {names}:", file=sys.stderr)
            show_diagnostics(compiled.diagnostics)
            raise StoppedSpecError


def report_all_rounds(compiled: Compilation) -> None:
    """Say of a directory that plain Snakemake runs that it has all rounds."""
    stopping = () if compiled.module is None else compiled.module.stopping
    if stopping:
        names = some(dict.fromkeys(each.repeat for each in stopping))
        print(
            f"agentc: `until` of {names} is followed only by `agentc run`: this has all rounds",
            file=sys.stderr,
        )


def show_rounds(so_far: Sequence[RoundsProgress]) -> None:
    """A line for each repeat that stops, once for cells of which the same is to be said."""
    from agentc.searching.stopping import round_lines

    for line in round_lines(so_far):
        print(line, flush=True)
