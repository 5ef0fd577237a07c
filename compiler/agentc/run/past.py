"""Plans of past runs: the last of an experiment, the different one before it, and those that its
history names, as `quickstart@3` for its third run."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.kinds.field import Json
from agentc.plan.render import read_document
from agentc.runtime.layout import StoreLayout
from agentc.store.paths import RunFolder, run_names


class UnknownRunError(Exception):
    """No such run, or none whose plan was kept; the message says which there are."""


def read_past(path: Path) -> dict[str, Json] | None:
    """A plan that a run left, or None when there is none that can be read."""
    try:
        data = path.read_bytes()
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        return read_document(text.decode("utf-8"))
    except (OSError, ValueError, EOFError):
        return None


def keep_plan(folder: RunFolder, plan_text: str) -> str:
    """Keep the plan of a run for later comparisons, each text once; returns its digest."""
    data = plan_text.encode("utf-8")
    digest = hashlib.sha256(data).hexdigest()[:16]
    path = folder.kept_plan(digest)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        draft.write_bytes(gzip.compress(data, compresslevel=3, mtime=0))
        draft.replace(path)
    return digest


def find_past(layout: StoreLayout, reference: str) -> dict[str, Json]:
    """The plan of a run: `quickstart` is the last run of that experiment, `quickstart@3` its
    third. Raises UnknownRunError."""
    name, at, number = reference.partition("@")
    known = run_names(layout)
    if name not in known:
        hint = did_you_mean(name, known) or f"there are {listed(known) or 'none'}"
        raise UnknownRunError(f"no run of `{name}` with the store {layout.root}; {hint}")
    folder = RunFolder.of(layout, name)
    found = _of_history(folder, name, number) if at else read_past(folder.last_plan)
    if found is None:
        raise UnknownRunError(f"the plan of {reference} was not kept, or cannot be read")
    return found


def _of_history(folder: RunFolder, name: str, number: str) -> dict[str, Json] | None:
    lines = _history(folder)
    if not number.isdecimal() or not 1 <= int(number) <= len(lines):
        runs = "; ".join(f"{name}@{n} {_words(line)}" for n, line in enumerate(lines, 1))
        raise UnknownRunError(f"no run {name}@{number}; there are: {runs or 'none'}")
    digest = lines[int(number) - 1].get("plan")
    return read_past(folder.kept_plan(str(digest))) if digest else None


def _history(folder: RunFolder) -> list[dict[str, Any]]:
    try:
        text = folder.history.read_text(encoding="utf-8")
    except OSError:
        return []
    found = []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:  # a line that a kill cut off
            continue
        found.append(entry if isinstance(entry, dict) else {})
    return found


def _words(line: dict[str, Any]) -> str:
    began = line.get("began")
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(began)) if began else "at some time"
    ran = len(line.get("ran") or ())
    return f"({when}, {ran} jobs ran, exit {line.get('exit')})"
