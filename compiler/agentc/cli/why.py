"""`agentc why [SPEC] NAME`: why a job would run, or why one of the last run had to; with `--full`,
what its result was made from (`provenance.py`)."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import (
    add_allow_path_argument,
    add_format_argument,
    add_param_argument,
    names_spec,
)
from agentc.cli.choose_run import choose_run
from agentc.cli.parser import add_store_argument
from agentc.cli.spec_work import find_spec_work
from agentc.exit_codes import EXIT_NOT_FOUND, EXIT_USAGE
from agentc.runtime.store.layout import StoreLayout

if TYPE_CHECKING:
    from agentc.plan.review import Item, Review
    from agentc.run.observe import JobSnapshot

HELP = "why a job or stage runs, or does not, key by key; what its result was made from"

_EPILOG = """\
  agentc why specs/quickstart.yaml sft   why it would run: the spec against the last run
  agentc why eto.2.dpo                   why it ran: the last run against the one before
  agentc why sft --full                  what its result was made from, up to the roots
  agentc why sft/2c9237d0 --full         the same of an object of the store, by its key
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    parser.usage = (
        "agentc why [-h] [-p NAME=VALUE] [--scale NAME] [--allow-path DIR] "
        "[--run NAME] [--full] [--store DIR] [--format {text,json}] [SPEC] JOB|STAGE"
    )
    add_allow_path_argument(parser)
    parser.set_defaults(locked=False)
    parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help="a job or stage (`sft`, `eto.2.dpo`, `eto`); with a spec, what it would do",
    )
    add_param_argument(parser)
    parser.add_argument("--scale", metavar="NAME", help="one of the spec's `scales:`")
    parser.add_argument("--run", metavar="NAME", help="the experiment; default: the one run last")
    parser.add_argument(
        "--full",
        action="store_true",
        help="inputs of the result up to the roots, with versions, seeds, hardware and time; NAME "
        "may be an object of the store",
    )
    add_store_argument(parser)
    add_format_argument(parser, "json: an object for each job, one a line")


def execute(arguments: argparse.Namespace) -> int:
    """0; 1 when the spec has errors; 2 for a wrong command line; 4 with --full when a manifest
    cannot be read; 5 when there was no such run, or there is no such job or object, or no result
    yet."""
    import json

    from agentc.plan.review import change_document
    from agentc.plan.stage_names import matching_names, nearest
    from agentc.store.paths import RunFolder, readable_store

    specs = [name for name in arguments.names if names_spec(name)]
    names = [name for name in arguments.names if name not in specs]
    if len(specs) > 1 or len(names) != 1:
        words = "name one job or stage" if not names else "name one spec and one job or stage"
        print(f"agentc: {words}; `agentc plan SPEC` shows all jobs", file=sys.stderr)
        return EXIT_USAGE
    layout = readable_store(arguments.store)
    if arguments.full:
        from agentc.cli.provenance import show_provenance

        if specs and arguments.run is not None:
            arguments.parser.error("name the run by its spec or by --run")
        arguments.name, arguments.run = names[0], specs[0] if specs else arguments.run
        return show_provenance(arguments, layout)
    found = _of_spec(arguments, specs[0], layout) if specs else _of_run(arguments, layout)
    if isinstance(found, int):
        return found
    review, since = found
    ids = [name for item in review.items for name in (str(item.job["stage"]), item.id)]
    meant = matching_names(names[0], ids)
    wanted = [item for item in review.items if {item.id, str(item.job["stage"])} & {*meant}]
    if not wanted:
        hint = nearest(names[0], ids)
        print(f"agentc: {review.name} has no stage or job `{names[0]}`; {hint}", file=sys.stderr)
        return EXIT_NOT_FOUND
    tried = _tried(wanted, layout, RunFolder.of_plan(layout, review.work.document).label)
    for item in wanted:
        seen = tried.get(item.id)
        if arguments.format == "json":
            now = {} if seen is None else {"attempt": _attempt(seen)}
            found_json = {"id": item.id, **change_document(item), **now}
            print(json.dumps(found_json, ensure_ascii=False))
        else:
            lines = [] if seen is None else _attempt_lines(seen, item, layout)
            print("\n".join([*_answer(item, review, since), *lines]))
    return 0


def _tried(items: Sequence[Item], layout: StoreLayout, label: str) -> dict[str, JobSnapshot]:
    """Jobs without a result that wait in SLURM's queue, or whose last attempt failed."""
    from agentc.run.active_runs import active_runs
    from agentc.run.observe import Observer
    from agentc.run.slurm_records import read_waiting

    jobs = [item.job for item in items if item.state == "run"]
    tokens = [run.token for run in active_runs(layout, label) if run.is_alive()]
    waiting = read_waiting(layout, label, tokens)
    return {
        seen.id: seen
        for seen in Observer(layout, jobs, since=0.0, waiting=lambda: waiting).observe()
        if seen.state in ("failed", "killed") or seen.queue is not None
    }


def _attempt(seen: JobSnapshot) -> dict[str, object]:
    """For `--format json`: how SLURM ended the job, and where it waits."""
    from dataclasses import asdict

    whole = asdict(seen)
    return {name: whole[name] for name in ("state", "message", "ending", "queue")}


def _attempt_lines(seen: JobSnapshot, item: Item, layout: StoreLayout) -> list[str]:
    from agentc.run.text_view import details, sentence

    head = f"the last attempt {sentence(seen)}" if seen.queue is None else sentence(seen)
    log = layout.staging(item.object) / "logs" / "log.txt"
    lines = [f"  {head}", *(f"    {line}" for line in details(seen))]
    return [*lines, *([f"  log: {log}"] if log.exists() or seen.queue is None else [])]


def _of_spec(
    arguments: argparse.Namespace, spec: str, layout: StoreLayout
) -> tuple[Review, str] | int:
    """What the spec would do, compared with the last run; or the exit code."""
    from agentc.backend_api import load_backends
    from agentc.plan.review import review_plan
    from agentc.run.past import plan_before, read_past
    from agentc.store.paths import RunFolder

    arguments.spec = Path(spec)
    work = find_spec_work(arguments, load_backends(), open_layout=lambda _: layout).work
    review = review_plan(work, plan_before(layout, work.document))
    before = read_past(RunFolder.of_plan(layout, work.document).previous_plan)
    if before is not None and all(diff.novelty == "same" for diff in review.diffs.values()):
        # The last run was of this very plan: what it was compared with is the answer.
        return review_plan(work, before), "the run before the last"
    return review, "the last run"


def _of_run(arguments: argparse.Namespace, layout: StoreLayout) -> tuple[Review, str] | int:
    """What the last run had to do, compared with the plan before; or the exit code."""
    from agentc.plan.review import review_plan
    from agentc.plan.work import find_work
    from agentc.run.past import read_past

    folder = choose_run(layout, arguments.run, arguments).folder
    after = read_past(folder.last_plan)
    if after is None:
        print(f"agentc: the last plan of {folder.label} cannot be read", file=sys.stderr)
        return EXIT_NOT_FOUND
    before = read_past(folder.previous_plan)
    return review_plan(find_work(after, layout), before), "the run before"


def _answer(item: Item, review: Review, since: str) -> list[str]:
    from agentc.plan.review import change_lines, novelty_words, state_words

    head = f"{item.id} ({item.object[: len(str(item.job['kind'])) + 9]}) {state_words(item)}"
    if item.diff is None:
        reason = "there is no earlier run of this experiment to compare with"
    elif item.diff.novelty == "changed":
        reason = f"its key changed since {since}"
    else:
        words = novelty_words(item) or "nothing that enters its key changed"
        reason = f"{words} since {since}" if item.diff.was is None else words
    lines = [f"  {line}" for line in change_lines(item, review.diffs)]
    return [f"{head}: {reason}", *lines, *_origin(item, review.work.layout)]


def _origin(item: Item, layout: StoreLayout) -> list[str]:
    """When the object was made, and for which job, if that was another one."""
    from agentc.store.objects import read_object

    try:
        manifest = read_object(layout, item.object).manifest
    except (OSError, ValueError):
        return []
    started = manifest.get("started")
    if not isinstance(started, (int, float)):
        return []
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(started))
    other = f" as `{manifest.get('id')}`" if manifest.get("id") != item.id else ""
    return [f"  made {when}{other}, in {manifest.get('wall_s', 0):.0f} s"]
