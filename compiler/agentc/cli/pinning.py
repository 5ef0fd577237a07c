"""Branches and tags of the model hub become commits, which a lock keeps: what `agentc lock` and the
first `agentc run` of a spec share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentc.cli.arguments import compile_typed, show_diagnostics
from agentc.cli.spec_work import RefusedSpecError
from agentc.diagnostics import Diagnostic
from agentc.lock.collect import collect_lock
from agentc.lock.document import LockDocument, lock_beside, read_lock, render_lock
from agentc.lock.hub import UNPINNED_FIX, HubError, HubUnreachableError, resolve_revision
from agentc.lock.references import OutsideReferences, Revision, is_commit
from agentc.runtime.model_folder.hub_cache import cache_folder, cached_commit
from agentc.source.files import is_directory, is_file
from agentc.source.user_config import model_folders

if TYPE_CHECKING:
    from agentc.backend_api import BackendTable
    from agentc.compilation import Compilation


def resolve_commits(
    revisions: Iterable[Revision],
    pins: Mapping[Revision, str],
    *,
    offline: bool = False,
    upgrade: bool = False,
) -> tuple[dict[Revision, str], list[Diagnostic]]:
    """A commit for every revision, which is printed, and errors for those that have none. Pins stay
    and are checked with the hub; with `upgrade` they become what the hub says."""
    found: dict[Revision, str] = {}
    complaints: list[Diagnostic] = []
    for repo, revision in revisions:
        pinned = revision if is_commit(revision) else pins.get((repo, revision))
        keep = pinned is not None and not upgrade
        problem = None
        if offline:
            now, reason = None, "offline"
        else:
            try:
                now, reason = resolve_revision(repo, pinned if pinned and keep else revision), ""
            except HubUnreachableError as error:
                now, reason = None, str(error)
            except HubError as error:
                now, reason, problem = None, "", str(error)
        cached = None
        if pinned is None and now is None and problem is None:
            cached = cached_commit(repo, revision)
        commit = pinned if keep else now or pinned or cached
        if problem is None and commit is None:
            problem = f"`{revision}` of {repo} is pinned by no lock yet ({reason})"
        if problem is not None:
            complaints.append(
                Diagnostic(
                    code="AGC744",
                    message=problem,
                    fix=_remedy(repo),
                )
            )
            continue
        assert commit is not None
        found[repo, revision] = commit
        name = f"{repo} {revision}" if revision != commit else repo
        state = "checked with the hub" if now is not None else f"not checked: {reason}"
        origin = f" of the hub's cache on this machine ({cache_folder()})" if cached else ""
        print(f"  {name}: commit {commit}{origin}, {state}")
    return found, complaints


def _remedy(repo: str) -> str:
    """What to do about a repository whose commit is not known."""
    if any(is_directory(folder / repo) for folder in model_folders()):
        return f"one of your model folders has it: write `{{path: {repo}}}` instead of the hub's"
    return UNPINNED_FIX


def compile_pinned(
    compiled: Compilation, arguments: argparse.Namespace, table: BackendTable
) -> Compilation:
    """The compilation with a commit for each branch and tag that no lock pins yet. They are written
    to the lock beside the spec; a lock that exists keeps all else. Raises RefusedSpecError where it
    cannot be done, which is printed."""
    moving = compiled.references.unpinned
    if compiled.plan is None or not moving:
        return compiled
    found, complaints = resolve_commits(moving, {})
    if complaints:
        show_diagnostics(complaints)
        raise RefusedSpecError
    target = lock_beside(arguments.spec)
    lock = previous_lock(target)[0]
    known = {} if lock is None else lock.pins()
    pinned = compile_typed(arguments, table, references=OutsideReferences(pins={**known, **found}))
    if pinned.plan is None:
        show_diagnostics(pinned.diagnostics)
        raise RefusedSpecError
    new = collect_lock(pinned.plan, pinned.references, pinned.templates, pinned.scale)
    if lock is not None:
        models = dict(sorted({**lock.section("models"), **new.section("models")}.items()))
        new = replace(lock, sections={**lock.sections, "models": models})
    try:
        write_lock(target, render_lock(new))
    except OSError as error:
        print(
            f"agentc: cannot write {target}: {error.strerror or type(error).__name__}; give the "
            "commit as `revision:` of the model",
            file=sys.stderr,
        )
        raise RefusedSpecError from None
    print(f"{target}: written; later commands use these commits")
    return pinned


def previous_lock(target: Path) -> tuple[LockDocument | None, bool]:
    """The lock that is there, and whether a file that is there could be read."""
    from agentc.diagnostics import Sink

    if not is_file(target):
        return None, True
    sink = Sink()
    found = read_lock(target, sink)
    show_diagnostics([replace(one, severity="warning") for one in sink.sorted()])
    return found, found is not None


def write_lock(path: Path, text: str) -> None:
    """The file at once, or not at all. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
