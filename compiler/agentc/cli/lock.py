"""`agentc lock SPEC`: write down everything outside of the spec that its results depend on."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import (
    add_spec_arguments,
    compile_typed,
    print_diagnostics,
    show_diagnostics,
)
from agentc.exit_codes import EXIT_SPEC, EXIT_USAGE
from agentc.source.files import is_file

if TYPE_CHECKING:
    from agentc.lock.document import LockDocument
    from agentc.lock.references import Revision

_MOST_CHANGES = 8

HELP = "pin all that a spec depends on outside of itself: revisions, files, software, keys"

_EPILOG = """\
The lock lies beside the spec (specs/eto.yaml has specs/eto.lock) and is read by every command from
then on: what differs from it is a warning, or an error with --locked. Revisions of a model hub
that the lock pins already stay as they are, unless --upgrade is given. HF_ENDPOINT and HF_TOKEN
mean what they mean to the hub's own tools.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _EPILOG
    add_spec_arguments(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="default: the spec's name with .lock"
    )
    parser.add_argument(
        "--offline",
        action="store_true",
        help="ask no hub: keep what is pinned, and say what could not be checked",
    )
    parser.add_argument(
        "--upgrade", action="store_true", help="pin branches and tags to what they are now"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 when the lock is not it"
    )


def execute(arguments: argparse.Namespace) -> int:
    """0 with the lock written (or, with --check, up to date); 1 when the spec has errors, when a
    revision cannot be resolved or the lock is out of date; 2 when it cannot be written."""
    from agentc.backend_api import load_backends
    from agentc.cli.pinning import previous_lock, resolve_commits, write_lock
    from agentc.lock.collect import collect_lock
    from agentc.lock.document import lock_beside, render_lock
    from agentc.lock.references import OutsideReferences

    spec: Path = arguments.spec
    target: Path = arguments.output or lock_beside(spec)
    table = load_backends()
    before, readable = previous_lock(target)
    pins = {} if before is None else before.pins()
    wanted = OutsideReferences(pins=pins, moving=True)
    compiled = compile_typed(arguments, table, references=wanted)
    resolved: dict[Revision, str] = {}
    if compiled.plan is not None and wanted.revisions:
        resolved, complaints = resolve_commits(
            wanted.revisions, pins, offline=arguments.offline, upgrade=arguments.upgrade
        )
        if complaints:
            others = [each for each in compiled.diagnostics if each.code != "AGC745"]
            show_diagnostics([*others, *complaints])
            return EXIT_SPEC
        final = OutsideReferences(pins=resolved)
        compiled = compile_typed(arguments, table, references=final)
    print_diagnostics(compiled, arguments)
    if compiled.plan is None:
        return EXIT_SPEC
    lock = collect_lock(compiled.plan, compiled.references, compiled.templates, arguments.scale)
    if arguments.check:
        return _check(target, before, readable, lock)
    text = render_lock(lock)
    try:
        unchanged = is_file(target) and target.read_bytes() == text.encode("utf-8")
        if not unchanged:
            write_lock(target, text)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        print(f"agentc: cannot write {target}: {reason}", file=sys.stderr)
        return EXIT_USAGE
    for line in _changes(before, lock):
        print(f"  {line}")
    print(f"{target}: {'nothing changed' if unchanged else 'written'}; {_summary(lock)}")
    return 0


def _check(target: Path, before: LockDocument | None, readable: bool, lock: LockDocument) -> int:
    from agentc.lock.compare import compare_lock
    from agentc.lock.document import render_lock

    if before is None:
        if readable:
            print(f"agentc: there is no lock {target}", file=sys.stderr)
        return 1
    found = compare_lock(before, lock, "error")
    show_diagnostics(found)
    if not found and render_lock(before) != render_lock(lock):
        # Only the params, or the release that wrote it, differ: what it pins holds.
        print(f"{target}: holds, though `agentc lock` would write it differently now")
        return 0
    if not found:
        print(f"{target}: up to date; {_summary(lock)}")
    return 1 if found else 0


def _changes(before: LockDocument | None, after: LockDocument) -> Iterator[str]:
    """What the new lock says otherwise; of jobs, what changed in them."""
    from agentc.lock.compare import job_changes
    from agentc.lock.document import SECTIONS

    if before is None:
        return
    for section in SECTIONS:
        old, new = before.section(section), after.section(section)
        names = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
        if section == "jobs" and names:
            yield f"jobs: {len(names)} of {len({*old, *new})} have other keys"
            yield from (f"  {line}" for line in job_changes(before, after, _MOST_CHANGES))
        elif section not in ("jobs", "settings"):
            for name in names:
                yield f"{section}: {name}: {old.get(name, 'new')} -> {new.get(name, 'gone')}"


def _summary(lock: LockDocument) -> str:
    nouns = ("models", "files", "templates", "software", "backends", "jobs")
    counts = [(noun, len(lock.section(noun))) for noun in nouns]
    return ", ".join(f"{n} {noun if n != 1 else noun[:-1]}" for noun, n in counts if n)
