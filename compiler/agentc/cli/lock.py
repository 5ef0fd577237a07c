"""`agentc lock SPEC`: write down everything outside of the spec that its results rest on."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import add_spec_arguments, compile_typed, show_diagnostics, show_found
from agentc.exit_codes import EXIT_SPEC, EXIT_USAGE
from agentc.source.read import is_file

if TYPE_CHECKING:
    from agentc.diagnostics import Diagnostic
    from agentc.lock.document import LockDocument
    from agentc.lock.references import Revision

_MOST_CHANGES = 8

HELP = "pin all that a spec rests on outside of itself: revisions, files, environments, keys"

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
    from agentc.lock.collect import collect_lock
    from agentc.lock.document import lock_beside, render_lock
    from agentc.lock.references import OutsideReferences

    spec: Path = arguments.spec
    target: Path = arguments.output or lock_beside(spec)
    table = load_backends()
    before, readable = _previous(target)
    pins = {} if before is None else before.pins()
    wanted = OutsideReferences(pins=pins, collecting=True)
    compiled = compile_typed(arguments, table, references=wanted)
    resolved: dict[Revision, str] = {}
    if compiled.plan is not None and wanted.revisions:
        resolved, complaints = _resolve(wanted, pins, arguments)
        if complaints:
            show_diagnostics([*compiled.diagnostics, *complaints])
            return EXIT_SPEC
        final = OutsideReferences(pins=resolved)
        compiled = compile_typed(arguments, table, references=final)
    show_found(compiled, arguments)
    if compiled.plan is None:
        return EXIT_SPEC
    lock = collect_lock(compiled.plan, compiled.references, compiled.templates, arguments.scale)
    if arguments.check:
        return _check(target, before, readable, lock)
    text = render_lock(lock)
    try:
        unchanged = is_file(target) and target.read_bytes() == text.encode("utf-8")
        if not unchanged:
            _replace(target, text)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        print(f"agentc: cannot write {target}: {reason}", file=sys.stderr)
        return EXIT_USAGE
    for line in _changes(before, lock):
        print(f"  {line}")
    print(f"{target}: {'nothing changed' if unchanged else 'written'}; {_summary(lock)}")
    return 0


def _previous(target: Path) -> tuple[LockDocument | None, bool]:
    """The lock that is there, and whether a file that is there could be read."""
    from dataclasses import replace

    from agentc.diagnostics import Sink
    from agentc.lock.document import read_lock

    if not is_file(target):
        return None, True
    sink = Sink()
    found = read_lock(target, sink)
    show_diagnostics([replace(one, severity="warning") for one in sink.sorted()])
    return found, found is not None


def _resolve(
    wanted: object, pins: Mapping[Revision, str], arguments: argparse.Namespace
) -> tuple[dict[Revision, str], list[Diagnostic]]:
    """A commit for every revision, and errors for those that have none."""
    from agentc.diagnostics import Diagnostic
    from agentc.lock.hub import HubError, HubUnreachableError, resolve_revision
    from agentc.lock.references import OutsideReferences, is_commit

    assert isinstance(wanted, OutsideReferences)
    found: dict[Revision, str] = {}
    complaints: list[Diagnostic] = []
    for repo, revision in wanted.revisions:
        pinned = revision if is_commit(revision) else pins.get((repo, revision))
        keep = pinned is not None and not arguments.upgrade
        problem = None
        if arguments.offline:
            now, reason = None, "offline"
        else:
            try:
                now, reason = resolve_revision(repo, pinned if pinned and keep else revision), ""
            except HubUnreachableError as error:
                now, reason = None, str(error)
            except HubError as error:
                now, reason, problem = None, "", str(error)
        commit = pinned if keep else now or pinned
        if problem is None and commit is None:
            problem = f"`{revision}` of {repo} is pinned by no lock yet ({reason})"
        if problem is not None:
            complaints.append(
                Diagnostic(
                    code="AGC744",
                    message=problem,
                    fix="give the 40 hex digits of a commit, or try again with a network",
                )
            )
            continue
        assert commit is not None
        found[repo, revision] = commit
        name = f"{repo} {revision}" if revision != commit else repo
        state = "checked with the hub" if now is not None else f"not checked: {reason}"
        print(f"  {name}: commit {commit}, {state}")
    return found, complaints


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
    nouns = ("models", "files", "templates", "environments", "backends", "jobs")
    counts = [(noun, len(lock.section(noun))) for noun in nouns]
    return ", ".join(f"{n} {noun if n != 1 else noun[:-1]}" for noun, n in counts if n)


def _replace(path: Path, text: str) -> None:
    import os

    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
