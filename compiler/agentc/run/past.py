"""Plans of past runs: the last of a variant, the different one before it, and those that its
history names, as `quickstart@3` for its third run, or `quickstart@smoke@3`."""

from __future__ import annotations

import gzip
import hashlib
import os
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentc.diagnostics.suggest import did_you_mean, listed
from agentc.exit_codes import EXIT_NOT_FOUND, CommandError
from agentc.kinds.field import Json
from agentc.plan.render import read_document
from agentc.runtime.store.layout import StoreLayout
from agentc.store.paths import RunFolder, run_names
from agentc.store.run_history import list_runs, read_history


class UnknownRunError(CommandError):
    """No such run, or none whose plan was kept; the message says which there are."""

    exit_code = EXIT_NOT_FOUND


def read_past(path: Path) -> dict[str, Json] | None:
    """A plan that a run left, or None when there is none that can be read."""
    try:
        return read_document(read_plan_text(path))
    except (OSError, ValueError):
        return None


def read_plan_text(path: Path) -> str:
    """Of a plan, packed or not. Raises OSError or ValueError."""
    data = path.read_bytes()
    try:
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    except (EOFError, zlib.error) as error:
        raise ValueError(f"{path} is damaged ({error})") from None


def keep_plan(folder: RunFolder, plan_text: str) -> str:
    """Keep the plan of a run for later comparisons, each text once; returns its digest."""
    digest = plan_digest(plan_text)
    path = folder.stored_plan(digest)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        draft.write_bytes(gzip.compress(plan_text.encode("utf-8"), compresslevel=3, mtime=0))
        draft.replace(path)
    return digest


def plan_digest(plan_text: str) -> str:
    """What names a kept plan."""
    return hashlib.sha256(plan_text.encode("utf-8")).hexdigest()[:16]


def plan_before(layout: StoreLayout, document: Mapping[str, Any]) -> dict[str, Json] | None:
    """What a plan is compared with: the last plan of its variant, else the last one of any variant
    of its experiment."""
    path = path_before(layout, document)
    return None if path is None else read_past(path)


def path_before(layout: StoreLayout, document: Mapping[str, Any]) -> Path | None:
    """Where that one lies."""
    own = RunFolder.of_plan(layout, document).last_plan
    if own.is_file():
        return own
    name = str(document["name"])
    return next(
        (run.folder.last_plan for run in list_runs(layout) if run.variant.name == name), None
    )


def find_past(layout: StoreLayout, reference: str) -> dict[str, Json]:
    """The plan of a run: `quickstart` is the last run of that variant, `quickstart@3` its third.
    Raises UnknownRunError."""
    name, at, number = reference.rpartition("@")
    if not number.isdecimal():
        name, at = reference, ""
    known = run_names(layout)
    if name not in known and not at:
        # A name alone: the latest of its variants.
        same = (run.label for run in list_runs(layout) if run.variant.name == name)
        name = next(same, name)
    if name not in known:
        hint = did_you_mean(name, known) or f"there are {listed(known) or 'none'}"
        raise UnknownRunError(f"no run of `{name}` with the store {layout.root}; {hint}")
    folder = RunFolder.of(layout, name)
    found = _of_history(folder, name, number) if at else read_past(folder.last_plan)
    if found is None:
        raise UnknownRunError(f"the plan of {reference} was not kept, or cannot be read")
    return found


def _of_history(folder: RunFolder, name: str, number: str) -> dict[str, Json] | None:
    lines = read_history(folder)
    if not number.isdecimal() or not 1 <= int(number) <= len(lines):
        runs = "; ".join(f"{name}@{n} {_words(line)}" for n, line in enumerate(lines, 1))
        raise UnknownRunError(f"no run {name}@{number}; there are: {runs or 'none'}")
    digest = lines[int(number) - 1].get("plan")
    return read_past(folder.stored_plan(str(digest))) if digest else None


def _words(line: dict[str, Any]) -> str:
    began = line.get("began")
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(began)) if began else "at some time"
    ran = len(line.get("ran") or ())
    return f"({when}, {ran} jobs ran, exit {line.get('exit')})"
