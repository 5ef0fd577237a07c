"""`agentc search SPEC`: params chosen by a measure; each trial is a run of `agentc run`."""

from __future__ import annotations

import argparse
import io
import json
import shlex
import sys
import time
from collections.abc import Mapping
from contextlib import closing, redirect_stdout
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from agentc.cli import run
from agentc.cli.arguments import add_format_argument, compile_typed
from agentc.cli.parser import positive
from agentc.cli.spec_work import compile_and_report, with_stopped_rounds
from agentc.exit_codes import EXIT_DONE, EXIT_FAILED, EXIT_SPEC, EXIT_USAGE

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.ir.search import Search
    from agentc.kinds.field import Json
    from agentc.runtime.store.layout import StoreLayout
    from agentc.searching.follow import Refused
    from agentc.searching.objective import Measured
    from agentc.searching.study import Study, StudyFolder

HELP = "look for good values of params: trials that are runs, by the spec's `search:`"

_EPILOG = """\
Finished trials are not repeated: a search that was cut off continues with the same study, and one
with a larger --trials makes it longer. `-p NAME=VALUE` takes a param out of the search.
"""
_SEARCHER = "optuna"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    run.add_run_arguments(parser)
    parser.add_argument(
        "--trials",
        type=positive,
        metavar="N",
        help="how many trials there are in the end, those of before included (default: the spec's)",
    )
    parser.add_argument(
        "-n",
        "--dry-run",
        action="store_true",
        help="show the trials that there are, and run nothing",
    )
    add_format_argument(parser, "form of the trials at the end")


def execute(arguments: argparse.Namespace) -> int:
    """0 done; 1 errors in the spec, or over its budget; 2 it has no `search:`; 3 trials failed one
    after another, another search is at work, or Optuna cannot be had; 4 no usable store; 130
    interrupted."""
    from agentc.backend_api import load_backends
    from agentc.backend_api.trackers import installed_searcher
    from agentc.cli.pinning import compile_pinned
    from agentc.plan.render import plan_document
    from agentc.runtime.software.job_software import SoftwareError
    from agentc.searching.follow import follow
    from agentc.searching.study import (
        SearcherProcess,
        Study,
        StudyFolder,
        needed_by_searcher,
        opening_request,
    )
    from agentc.software.build import build_all
    from agentc.store.paths import open_store, variant_of

    table = load_backends()
    compiled = compile_and_report(arguments, table)
    if not arguments.dry_run:
        compiled = compile_pinned(compiled, arguments, table)
    assert compiled.plan is not None
    search = None if compiled.module is None else compiled.module.search
    searcher = installed_searcher(_SEARCHER)
    lacking = (
        "the spec has no `search:`"
        if search is None
        else "`-p` gives every param of `search.over`: nothing is left to search"
        if not search.axes
        else f"no searcher `{_SEARCHER}` is installed"
    )
    if search is None or not search.axes or searcher is None:
        print(f"agentc: {lacking}; docs/sweeps.md says how one is written", file=sys.stderr)
        return EXIT_USAGE
    search = replace(search, trials=arguments.trials or search.trials)
    layout = open_store(arguments.store)
    stops = compiled.module is not None and bool(compiled.module.stopping)
    scene = _Scene(arguments, table, search, layout, stops=stops)
    measures = scene.measures({axis.name: axis.first() for axis in search.axes})
    if not isinstance(measures, tuple):
        print(f"agentc: the first values of each axis are refused: {measures.why}", file=sys.stderr)
        return EXIT_SPEC
    if measures and not arguments.dry_run:
        scene.check({axis.name: axis.first() for axis in search.axes}, measures[-1].stage)
    label = variant_of(plan_document(compiled.plan)).label
    folder = StudyFolder.of(layout, label, search, measures)
    needed = needed_by_searcher(searcher)
    if not needed.ready(layout):
        print(f"building the software stack {needed.name} (once for all)", flush=True)
        try:
            build_all([needed], layout, lambda *_: None)
        except SoftwareError as error:
            print(f"agentc: {error}", file=sys.stderr)
            return EXIT_FAILED
    with folder.held():
        opening = opening_request(folder, search)
        with closing(SearcherProcess(searcher, layout, opening, folder.log)) as process:
            study = Study(process)
            code = EXIT_DONE
            if not arguments.dry_run:
                # What is asked for as JSON has standard output for itself.
                beside = sys.stderr if arguments.format == "json" else sys.stdout
                with redirect_stdout(beside):
                    code = follow(search, study, scene, lambda line: print(line, flush=True))
            _show(search, study, folder, arguments)
    return code


class _Scene:
    """Trials by the command line: each is the run that `agentc run -p ...` would be."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        table: BackendTable,
        search: Search,
        layout: StoreLayout,
        *,
        stops: bool,
    ) -> None:
        self._arguments, self._table = arguments, table
        self._search, self._layout, self._stops = search, layout, stops
        self._began = 0.0

    def measures(self, params: Mapping[str, Json]) -> tuple[Measured, ...] | Refused:
        """The stages that measure a trial; why its values are refused, where they are."""
        from agentc.plan.render import plan_document
        from agentc.searching.follow import Refused
        from agentc.searching.objective import measures_of

        compiled = compile_typed(self._with(params), self._table)
        if compiled.plan is None:
            error = next(each for each in compiled.diagnostics if each.severity == "error")
            return Refused(f"{error.code}: {error.message}")
        return measures_of(plan_document(compiled.plan), self._search.stage)

    def check(self, params: Mapping[str, Json], until: str) -> None:
        """Look for what would end a run of the first trial, before the searcher is built. Raises
        RefusedSpecError."""
        from agentc.cli.run_sequence import ExperimentRun

        given = self._with(params, until=until, dry_run=False)
        with redirect_stdout(io.StringIO()):  # the trial itself prints how far its rounds are
            run = ExperimentRun.prepare(given)
        run.check(run.estimate())

    def run(self, params: Mapping[str, Json], until: str) -> int:
        """Run what a stage needs."""
        self._began = time.time()
        return run.execute(self._with(params, until=until, dry_run=False))

    def failed(self, params: Mapping[str, Json]) -> tuple[str, ...]:
        """Where a wrapper or Snakemake was killed, or SLURM ended a job, jobs say nothing of the
        kind."""
        from agentc.plan.render import plan_document
        from agentc.run.observe import Observer

        compiled = compile_typed(self._with(params), self._table)
        assert compiled.plan is not None
        document: Any = plan_document(compiled.plan)
        seen = Observer(self._layout, document["jobs"], since=self._began).observe()
        own = (one for one in seen if one.state == "failed" and one.ending is None)
        return tuple(one.id for one in own if not one.stopped)

    def value(self, params: Mapping[str, Json], measured: Measured) -> float | None:
        """What the stage measured, after the rounds that there were if they stop by a rule."""
        from agentc.plan.render import plan_document
        from agentc.searching.objective import measures_of, value_of

        if self._stops:
            given = self._with(params)
            compiled = compile_typed(given, self._table)
            compiled, _ = with_stopped_rounds(compiled, given, self._table, self._layout)
            assert compiled.plan is not None
            found = measures_of(plan_document(compiled.plan), self._search.stage)
            measured = next(each for each in found if each.round == measured.round)
        return value_of(measured, self._search.metric, self._layout)

    def _with(self, params: Mapping[str, Json], **others: object) -> argparse.Namespace:
        from agentc.store.paths import value_text

        texts = {name: value_text(value) for name, value in params.items()}
        given = {**self._arguments.params, **texts}
        return argparse.Namespace(**{**vars(self._arguments), "params": given, **others})


def _show(search: Search, study: Study, folder: StudyFolder, arguments: argparse.Namespace) -> None:
    """All trials, the best, and the command that runs it whole."""
    from agentc.searching.follow import format_value
    from agentc.store.paths import value_text
    from agentc.text import aligned, counted

    best = study.best(search)
    if arguments.format == "json":
        found = {
            "study": str(folder.path),
            "stage": search.stage,
            "metric": search.metric,
            "direction": search.direction,
            "trials": [asdict(trial) for trial in study.trials],
            "best": None if best is None else best.number,
        }
        print(json.dumps(found, indent=2))
        return
    names = [axis.name for axis in search.axes]
    rows = [["trial", *names, search.metric, "state", ""]]
    for trial in study.trials:
        values = [format_value(trial.params.get(name)) for name in names]
        value = "-" if trial.value is None else f"{trial.value:.4g}"
        note = "best" if trial is best else trial.why
        rows.append([str(trial.number + 1), *values, value, trial.state, note])
    more = "larger" if search.direction == "maximize" else "smaller"
    print(f"\n{search.stage}: {search.metric}, {more} is better; the study is {folder.path}")
    if study.trials:
        print("\n".join(aligned(rows, right=range(len(names) + 2))))
    left = search.trials - study.finished
    if left > 0:
        print(f"{counted(left, 'trial')} of {search.trials} to go")
    if best is not None:
        given = {**arguments.params, **{n: value_text(v) for n, v in best.params.items()}}
        scale = ["--scale", arguments.scale] if arguments.scale else []
        words = ["agentc", "run", str(arguments.spec), *scale]
        words += [word for name, value in given.items() for word in ("-p", f"{name}={value}")]
        print(f"run the whole experiment with the best: {shlex.join(words)}")
