"""`agentc status [NAME|SPEC]`: how the jobs of a run stand, from the store's own files."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from agentc.cli.choose_run import NoRunError, add_run_choice, choose_run
from agentc.cli.store_argument import add_store_argument

HELP = "show how the jobs of the last run stand"


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    add_run_choice(parser)
    add_store_argument(parser)
    parser.add_argument(
        "--cost",
        action="store_true",
        help="by stage, what was expected before the run and what it took",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object for each job")


def execute(arguments: argparse.Namespace) -> int:
    """0 when all is done or under way, 3 when a job failed, 5 when nothing is known of it."""
    import json
    from dataclasses import asdict

    from agentc.cost.expected import outcome_lines, outcomes, read_expected
    from agentc.plan.work import find_work, object_of, read_plan
    from agentc.run.observe import Observer
    from agentc.run.wording import sentence
    from agentc.store.paths import look_into

    layout = look_into(arguments.store)
    try:
        run = choose_run(layout, arguments.name, arguments)
    except NoRunError as error:
        return error.tell()
    name = run.label
    work = find_work(read_plan(run.folder.last_plan), layout)
    seen = Observer(layout, work.needed, since=0.0).look()
    expected = read_expected(run.folder)
    entries = {str(job["id"]): expected.get(object_of(job)) for job in work.needed}
    if arguments.json:
        for one in seen:
            entry = entries.get(one.id)
            line = {**asdict(one), "expected_s": None if entry is None else entry["seconds"]}
            print(json.dumps(line, ensure_ascii=False, sort_keys=True))
    elif arguments.cost:
        lines = outcome_lines(outcomes(work.needed, layout, expected))
        print("\n".join(lines) or f"nothing that was expected of {name} has finished yet")
    else:
        width = max((len(one.id) for one in seen), default=0)
        print(f"{name}: {sum(one.state == 'done' for one in seen)} of {len(seen)} jobs are done")
        for one in seen:
            print(f"  {one.id:<{width}}  {sentence(one)}{_expectation(entries.get(one.id))}")
    return 3 if any(one.state in ("failed", "killed") for one in seen) else 0


def _expectation(entry: Mapping[str, Any] | None) -> str:
    """` (expected: 31 s)`."""
    from agentc.cost.render import shown_time

    return "" if entry is None else f" (expected: {shown_time(entry['seconds'][1])})"
