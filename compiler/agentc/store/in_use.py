"""Plans in use: each run that goes on keeps a file in `runs/<name>/in-use/` that names its plan, so
that `agentc store gc` leaves alone what it has and what it is about to use, on whichever node."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agentc.runtime.store import holder
from agentc.runtime.store.visible import now_at, refresh
from agentc.store.paths import RunFolder

_QUIET_S = 900.0
"""A run on another machine that was not heard of for so long is over."""
_BEAT_S = 10.0


@contextmanager
def plan_in_use(folder: RunFolder, plan: str) -> Iterator[Path]:
    """Says that the kept plan (by digest) is in use while the block runs."""
    record = holder.describe_self("run", ())
    path = folder.in_use / f"{record['host']}-{record['pid']}-{record['nonce']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps({**record, "plan": plan}, sort_keys=True) + "\n", encoding="utf-8")
    draft.rename(path)
    over = threading.Event()
    renewer = threading.Thread(target=_renew, args=(path, over), daemon=True)
    renewer.start()
    try:
        yield path
    finally:
        over.set()
        renewer.join()
        # Of a store that fails now the run has told already; its record is found to be old later.
        with suppress(OSError):
            path.unlink()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanUse:
    """A run's word that it uses a plan; not `alive` where the run was killed."""

    path: Path
    plan: Path
    alive: bool


def plan_uses(folder: RunFolder) -> list[PlanUse]:
    """Of the runs of a variant that are going on, or may be, and of those that were killed.

    Raises ValueError when a file cannot be read: nobody could tell whose objects are garbage."""
    refresh(folder.in_use)
    try:
        # Not `glob`, for which a folder that it cannot list is an empty one.
        paths = sorted(folder.in_use.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ValueError(f"{folder.in_use} cannot be read ({error})") from None
    now = now_at(folder.in_use)
    found = []
    for path in (path for path in paths if path.suffix == ".json"):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            quiet = now - path.stat().st_mtime
            alive = not holder.is_gone(record) and quiet < _QUIET_S
        except FileNotFoundError:
            continue
        except (OSError, ValueError, AttributeError) as error:
            raise ValueError(f"{path} cannot be read ({error})") from None
        plan = folder.kept_plan(str(record.get("plan")))
        found.append(PlanUse(path=path, plan=plan, alive=alive))
    return found


def _renew(path: Path, over: threading.Event) -> None:
    while not over.wait(_BEAT_S):
        with suppress(OSError):
            path.touch()
