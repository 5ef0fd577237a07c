"""Records of runs in `runs/<label>/`: the plan that was run, the one before it, the commit, a
history."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agentc.cost.estimate import Estimate
from agentc.cost.observe import actual_wall, read_subject
from agentc.cost.outcomes import expected_entry, read_expected
from agentc.exit_codes import EXIT_CLAIM, EXIT_DONE, EXIT_STORE
from agentc.plan.work import Work, object_of
from agentc.program.job import read_json
from agentc.run.past import keep_plan, plan_digest, read_plan_text
from agentc.runtime.store.file_system import explain
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder
from agentc.store.run_history import plan_uses, read_history


class Record:
    """The record of one run of an experiment."""

    def __init__(self, folder: RunFolder, work: Work, began: float) -> None:
        self._folder = folder
        self._work = work
        self.began = began
        self._reused = [job["id"] for job in work.present]
        self._plan = ""

    def open(self, plan_text: str, directory: Path, spec: Path | None = None) -> None:
        """Keep the plan (and the different one before it) and say that a run is going on; of
        `spec`, the file that the plan is of, the commit is noted."""
        folder = self._folder
        folder.path.mkdir(parents=True, exist_ok=True)
        if folder.last_plan.exists():
            # A damaged one differs from this one, whatever of it can be read.
            before = folder.last_plan.read_text(encoding="utf-8", errors="replace")
            if before != plan_text:
                self._note_complete(before)
                _write(folder.previous_plan, before)
        if not folder.last_plan.exists() or before != plan_text:
            _write(folder.last_plan, plan_text)
        # What cannot be read stays as it is: `gc` says so, and a run needs none of it.
        with suppress(ValueError):
            for use in plan_uses(folder):
                if not use.alive:
                    if use.plan.is_file():
                        self._note_complete(read_plan_text(use.plan))
                    use.path.unlink(missing_ok=True)
        self._plan = keep_plan(folder, plan_text)
        plan = str(directory / "plan.json")
        state: dict[str, Any] = {"began": self.began, "pid": os.getpid(), "plan": plan}
        if spec is not None and (commit := commit_of(spec)) is not None:
            state["commit"] = commit
        _write(folder.state, json.dumps(state, sort_keys=True) + "\n")

    def _note_complete(self, before: str) -> None:
        """Enter into the history that the plan which goes was complete, where the run that made it
        so was killed before it could: `gc` keeps the results of the last complete plan."""
        digest = plan_digest(before)
        lines = read_history(self._folder)
        if any(line.get("plan") == digest and line.get("complete") for line in lines):
            return
        try:
            targets = json.loads(before).get("targets")
        except (ValueError, AttributeError):
            return
        if _all_published(self._work.layout, targets):
            keep_plan(self._folder, before)
            state = read_json(self._folder.state)
            line = {"began": state.get("began"), "ended": None, "exit": None}
            _append(self._folder.history, {**line, "plan": digest, "complete": True})

    def expect(self, estimates: Mapping[str, Estimate]) -> None:
        """Keep what was expected of each job that has to run. Of jobs that are there already stays
        what was expected before they ran."""
        known = read_expected(self._folder)
        jobs = {object_of(job) for job in self._work.document["jobs"]}
        kept = {name: entry for name, entry in known.items() if name in jobs}
        now = {each.object: expected_entry(each) for each in estimates.values()
               if each.state == "run"}  # fmt: skip
        if now or kept != known:
            text = json.dumps({**kept, **now}, sort_keys=True, indent=1)
            _write(self._folder.estimate, text + "\n")

    def close(self, code: int, failed: Sequence[str]) -> None:
        """Add the run to the history: which jobs ran, which were there already, which failed."""
        try:
            _append(self._folder.history, self._line(code, failed))
        except OSError as error:  # a full disk: what the run was about matters more
            if code != EXIT_STORE:  # of a store that fails the run has told already
                message = explain(error, "the history of runs", self._folder.path)
                print(f"agentc: {message}", file=sys.stderr)

    def _line(self, code: int, failed: Sequence[str]) -> dict[str, Any]:
        work, layout = self._work, self._work.layout
        ran = [
            {"id": job["id"], "object": name, **_took(layout.object(name))}
            for job in work.missing
            if layout.is_published(name := object_of(job))
        ]
        targets = work.document["targets"]
        # What another node has made may show here a little later.
        whole = code in (EXIT_DONE, EXIT_CLAIM) and set(targets) <= set(work.wanted)
        return {
            "began": self.began,
            "ended": time.time(),
            "exit": code,
            "spec": work.document["spec"],
            "params": work.document.get("params") or {},
            "plan": self._plan,
            "complete": whole or _all_published(layout, targets),
            "ran": ran,
            "reused": self._reused,
            "failed": list(failed),
        }


def _all_published(layout: StoreLayout, targets: Sequence[str] | None) -> bool:
    try:
        return bool(targets) and all(layout.is_published(name) for name in targets or ())
    except OSError:
        return False


def _append(path: Path, line: Mapping[str, Any]) -> None:
    """One line; what a kill or a full disk has cut off before it stays a line of its own."""
    text = json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n"
    with path.open("ab+") as out:
        if out.tell():
            out.seek(-1, os.SEEK_END)
            text = text if out.read(1) == b"\n" else "\n" + text
        out.write(text.encode("utf-8"))


def _took(folder: Path) -> dict[str, Any]:
    """What a later estimate needs of a result that is deleted by then."""
    made = read_subject(folder)
    if made is None:
        return {"wall_s": None}
    idle = actual_wall(made)
    return {"wall_s": made.measured.get("wall_s"), "idle_s": idle, "on": made.machine.kind}


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def commit_of(spec: Path) -> dict[str, Any] | None:
    """The commit that is checked out where the spec lies, `{"id", "has_spec"}`: whether the spec
    is in it as it is. None outside of a repository.

    Only names are asked of git: no hook, filter or monitor of a stranger's repository is run."""
    try:
        text = spec.read_bytes()
        words = ["git", "-C", str(spec.absolute().parent), "rev-parse", "HEAD"]
        done = subprocess.run(
            [*words, f"HEAD:./{spec.name}"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    lines = done.stdout.split()
    if not lines or len(lines[0]) not in (40, 64) or not lines[0].isalnum():
        return None
    make = hashlib.sha1 if len(lines[0]) == 40 else hashlib.sha256
    blob = make(b"blob %d\0" % len(text) + text, usedforsecurity=False).hexdigest()
    return {"id": lines[0], "has_spec": lines[1:] == [blob]}
