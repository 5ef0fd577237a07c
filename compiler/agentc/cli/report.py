"""`agentc report [NAME|SPEC]`: where the report of the last run is; of an unfinished run, a report
over what the store has so far; of several runs, a page of all side by side; with `--table`, one
table of it; with `--claims`, what the paper says, what was measured, and each verdict."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentc.cli.arguments import (
    add_format_argument,
    compile_typed,
    names_spec,
    print_diagnostics,
    wants_colour,
)
from agentc.cli.choose_run import add_run_choice, choose_run
from agentc.cli.parser import add_store_argument
from agentc.exit_codes import EXIT_CLAIM, EXIT_FAILED, EXIT_NOT_FOUND, EXIT_SPEC
from agentc.program.artifact_files import FACTS_FILE, PROGRESS_FILE, REPORT_PAGE
from agentc.result_tables import FORMATS, TABLES_FILE
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder
from agentc.text import terminal_width

if TYPE_CHECKING:
    from agentc.plan.work import Document, Work
    from agentc.store.run_history import PastRun


HELP = "print the path of a run's report, one of its tables, or the verdicts on its claims"

_EPILOG = """\
--claims by a name: those of its run; by a spec: those of what it says now. Verdicts: a paper's
value is `reproduced` or `not reproduced`, a hypothesis `supported` or `contradicted`, and either
is `inconclusive` where the data do not decide, or `not judged`; docs/claims.md says how they are
made. Exit code 6: a claim with `gate: true` does not hold.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    add_run_choice(parser)
    parser.add_argument(
        "others",
        nargs="*",
        metavar="NAME|SPEC",
        help="more runs: one page with all of them side by side",
    )
    add_store_argument(parser)
    parser.add_argument("--open", action="store_true", help="open it in the web browser, too")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--claims", action="store_true", help="print the verdicts on the claims instead"
    )
    instead.add_argument(
        "--table", metavar="NAME", help="print one of its tables instead, with intervals and n"
    )
    instead.add_argument("--tables", action="store_true", help="list its tables instead")
    add_format_argument(
        parser,
        "of a table csv (default), latex or json; of claims text (default) or json",
        choices=("text", *FORMATS),
        default=None,
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 with the path on standard output; 1 the spec cannot be read, 3 the report could not be
    rendered, 5 there is nothing to report on, 6 with --claims a gated one does not hold."""
    of_one = (arguments.claims, arguments.tables, arguments.table, arguments.format)
    if arguments.others and any(of_one):
        arguments.parser.error("claims and tables are those of one run: name one")
    if arguments.claims:
        return _claims(arguments)
    if arguments.format == "text":
        arguments.parser.error("a table is csv, latex or json")
    from agentc.cli.report_runs import SameRunError
    from agentc.plan.work import find_work, read_plan
    from agentc.store.paths import readable_store

    layout = readable_store(arguments.store)
    try:
        if arguments.others:
            from agentc.cli.report_runs import compared_page

            names = (arguments.name, *arguments.others)
            return _show(compared_page(names, arguments, layout, _page_of), arguments)
        run = choose_run(layout, arguments.name, arguments)
        work = find_work(read_plan(run.folder.last_plan), layout)
        page = _page_of(run, work, layout)
    except (_RenderError, SameRunError) as error:
        return _fail(str(error), error.exit_code)
    if arguments.tables or arguments.table is not None:
        return _show_tables(page.with_name(TABLES_FILE), run.label, arguments)
    from agentc.run.report_page import report_to_show

    return _show(report_to_show(page, work), arguments)


def _show(page: Path, arguments: argparse.Namespace) -> int:
    print(page)
    if arguments.open:
        import webbrowser

        webbrowser.open(page.as_uri())
    return 0


def _page_of(run: PastRun, work: Work, layout: StoreLayout) -> Path:
    """The page of a run's report; of an unfinished run, one over what the store has. Raises
    _RenderError."""
    from agentc.kinds import REPORT_KIND

    name, folder = run.label, run.folder
    job = next((job for job in work.needed if job["kind"] == REPORT_KIND), None)
    if job is None:
        raise _RenderError(
            f"the plan of {name} has no report: no backend for reports is installed", EXIT_NOT_FOUND
        )
    page = layout.data(f"{job['kind']}/{job['key']}") / REPORT_PAGE
    if not page.is_file():
        published = [j for j in work.present if j is not job]
        if not published:
            raise _RenderError(
                f"no job of {name} has a result yet; `agentc status {name}` shows them",
                EXIT_NOT_FOUND,
            )
        try:
            page = _render_partial(job, work.needed, layout, folder)
        except (_RenderError, OSError) as error:
            raise _RenderError(f"the report of {name} could not be rendered: {error}") from error
        print(
            f"agentc: {name} is not finished: {len(published)} of {len(work.needed)} jobs are in "
            "this report",
            file=sys.stderr,
        )
    return page


def _show_tables(file: Path, run: str, arguments: argparse.Namespace) -> int:
    """The table that is asked for, or the names of all."""
    from agentc.diagnostics.suggest import did_you_mean, listed
    from agentc.result_tables import read_tables, table_text
    from agentc.text import aligned, counted

    try:
        found = {table.name: table for table in read_tables(file.read_text(encoding="utf-8"))}
    except FileNotFoundError:
        return _fail(
            f"the report of {run} is older than tables of reports; run it again",
            EXIT_NOT_FOUND,
        )
    except (OSError, ValueError) as error:
        return _fail(f"the tables of {run} cannot be read: {error}", EXIT_FAILED)
    if arguments.table is None:
        rows = [(t.name, counted(len(t.rows), "row"), t.title) for t in found.values()]
        print("\n".join(aligned(rows)))
        return 0
    table = found.get(arguments.table)
    if table is None:
        hint = did_you_mean(arguments.table, found) or f"there are {listed(found)}"
        return _fail(f"no table `{arguments.table}` in the report of {run}; {hint}", EXIT_NOT_FOUND)
    print(table_text(table, arguments.format or FORMATS[0]), end="")
    return 0


class _RenderError(Exception):
    """There is no report of a run, or its program failed; the message says why."""

    def __init__(self, message: str, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def _render_partial(
    job: Mapping[str, Any],
    needed: tuple[Mapping[str, Any], ...],
    layout: StoreLayout,
    folder: RunFolder,
) -> Path:
    """Run the report's own program over the objects that exist, in `runs/<name>/report/`; the
    compiler never imports backends."""
    import json

    from agentc.runtime.software import job_software, variables
    from agentc.runtime.store.plan_file import PlanError, PlanFile, module_of

    home = folder.path / "report"
    for part in ("data", "work", "logs"):
        (home / part).mkdir(parents=True, exist_ok=True)
    inputs = {
        role: [str(layout.data(name)) for name in names if layout.is_published(name)]
        for role, names in job["inputs"].items()
    }
    file = home / "job.json"
    described = {
        **{name: job[name] for name in ("id", "key", "kind", "placement", "contract")},
        "config": {**job["config"], "missing": _missing(job, needed, layout)},
        "inputs": {role: paths for role, paths in inputs.items() if paths},
        "input_objects": job["inputs"],
        "leases": {},
        "out": str(home / "data"),
        "work": str(home / "work"),
        "logs": str(home / "logs"),
        "facts": str(home / FACTS_FILE),
        "progress": str(home / PROGRESS_FILE),
    }
    file.write_text(json.dumps(described, ensure_ascii=False), encoding="utf-8")
    try:
        program = job["program"]
        state = json.loads(folder.state.read_text(encoding="utf-8"))
        plan = PlanFile(Path(state["plan"]))
        variables.declare_secrets(plan.secret_names())
        lock, text = plan.lock(job["software"])
        directory, record = job_software.ensure_software(layout, lock, text)
        code = job_software.code_directory(layout, [module_of(program)], plan.code())
        python = job_software.python_command(directory, record, layout.root, code)
        software = job_software.programs_of(directory, record)
    except (PlanError, job_software.SoftwareError, ValueError, KeyError) as error:
        raise _RenderError(str(error)) from error
    done = subprocess.run(
        [*python, *program, str(file)],
        cwd=home,
        env=job_software.job_variables(code, 1, False, {}, software),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise _RenderError(done.stderr.strip() or f"its program exited with {done.returncode}")
    return home / "data" / REPORT_PAGE


def _missing(
    report: Mapping[str, Any], needed: tuple[Mapping[str, Any], ...], layout: StoreLayout
) -> list[dict[str, str]]:
    """The jobs without a result, each with how it stands."""
    from agentc.run.observe import Observer
    from agentc.run.text_view import details, sentence

    seen = Observer(layout, needed, since=0.0).observe()
    kinds = {job["id"]: job["kind"] for job in needed}
    return [
        {"id": one.id, "kind": kinds[one.id], "state": "; ".join([sentence(one), *details(one)])}
        for one in seen
        if one.state != "done" and one.id != report["id"]
    ]


def _fail(message: str, code: int) -> int:
    print(f"agentc: {message}", file=sys.stderr)
    return code


def _claims(arguments: argparse.Namespace) -> int:
    """0; 1 errors in the spec; 5 there is nothing to show; 6 a gated claim does not hold."""
    if arguments.format not in (None, "text", "json") or arguments.open or arguments.others:
        arguments.parser.error("--claims prints text or json of one run, and opens nothing")
    import json

    from agentc.plan.work import read_plan
    from agentc.run.claims import (
        find_verdicts,
        gate_message,
        has_claims,
        render_verdicts,
        shut_gates,
    )
    from agentc.store.paths import readable_store, variant_of

    layout = readable_store(arguments.store)
    given = arguments.name
    if given is not None and names_spec(given):
        compiled = _compiled(arguments)
        if compiled is None:
            return EXIT_SPEC
        document = compiled
    else:
        document = read_plan(choose_run(layout, given, arguments).folder.last_plan)
    verdicts = find_verdicts(document, layout)
    if verdicts is None:
        what = "has no verdicts yet; run it first" if has_claims(document) else "has no claims"
        print(f"agentc: {variant_of(document).label} {what}", file=sys.stderr)
        return EXIT_NOT_FOUND
    if arguments.format == "json":
        print(json.dumps(verdicts, ensure_ascii=False, indent=2, sort_keys=True))
    else:
        width = terminal_width(sys.stdout)
        print(render_verdicts(verdicts, colour=wants_colour(sys.stdout), width=width))
    shut = shut_gates(verdicts)
    if shut:
        print(gate_message(shut), file=sys.stderr)
        return EXIT_CLAIM
    return 0


def _compiled(arguments: argparse.Namespace) -> Document | None:
    from agentc.backend_api import load_backends
    from agentc.plan.render import plan_document

    arguments.spec = Path(arguments.name)
    compiled = compile_typed(arguments, load_backends())
    print_diagnostics(compiled, arguments)
    return None if compiled.plan is None else plan_document(compiled.plan)
