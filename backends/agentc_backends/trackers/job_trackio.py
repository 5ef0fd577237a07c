"""The program of trackio: writes points into its SQLite files, as its own local runs do.

`Run.log` drops what it cannot write with a warning; the storage underneath raises. Rows carry ids
made of run, step and names, and trackio ignores an id that it has: what is handed over again by a
process that went on from a killed one is there once.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentc.runtime.tracking import program
from agentc.runtime.tracking.sink import HeldSteps, TrackedRun


class TrackioSink:
    """Rows wait until `flush`, which writes those of a run in one transaction."""

    def __init__(self, storage: Any, user: str) -> None:
        self._storage, self._user = storage, user
        self._waiting: dict[TrackedRun, list[tuple[int, dict[str, Any], str]]] = {}
        self._configs: dict[str, dict[str, Any]] = {}

    def open(self, run: TrackedRun) -> HeldSteps:
        from trackio.utils import to_json_safe

        held: HeldSteps = {}
        rows = self._storage.get_logs(run.project, run.name, run_id=run.id)
        for row in rows:
            for name, value in row.items():
                if isinstance(value, (int, float)) and name != "step":
                    held.setdefault(name, set()).add(int(row["step"]))
        if not rows:
            # What trackio.init() writes beside the user's own.
            own = {"_Group": run.group, "_Username": self._user, "tags": list(run.tags)}
            self._configs[run.id] = to_json_safe({**run.config, **own})
        return held

    def log(self, run: TrackedRun, step: int, numbers: Mapping[str, float]) -> None:
        self._row(run, step, dict(numbers), "\n".join(sorted(numbers)))

    def send_text(self, run: TrackedRun, title: str, text: str, words: Mapping[str, str]) -> None:
        from trackio import Markdown

        self._row(run, 0, {title: Markdown(text)._to_dict()}, f"{title}\n{text}")

    def finish(self, run: TrackedRun) -> None:
        """Trackio knows no end of a run."""

    def flush(self) -> None:
        for run, rows in self._waiting.items():
            self._storage.bulk_log(
                project=run.project,
                run=run.name,
                run_id=run.id,
                steps=[step for step, _, _ in rows],
                metrics_list=[metrics for _, metrics, _ in rows],
                log_ids=[row_id for _, _, row_id in rows],
                config=self._configs.pop(run.id, None),
            )
        self._waiting.clear()

    def close(self) -> None:
        self.flush()

    def _row(self, run: TrackedRun, step: int, metrics: dict[str, Any], what: str) -> None:
        row_id = hashlib.sha256(f"{run.id}\n{step}\n{what}".encode()).hexdigest()[:32]
        self._waiting.setdefault(run, []).append((step, metrics, row_id))


def make_sink(
    settings: Mapping[str, Any], folder: Path, report: Callable[[str], None]
) -> TrackioSink:
    """Trackio reads its folder from the environment, when it is imported."""
    chosen = settings.get("dir")
    if chosen:
        os.environ["TRACKIO_DIR"] = str(Path(chosen).absolute())
    from trackio.sqlite_storage import SQLiteStorage
    from trackio.utils import TRACKIO_DIR

    command = Path(sys.prefix) / "bin" / "trackio"
    where = f"TRACKIO_DIR={os.environ['TRACKIO_DIR']} " if "TRACKIO_DIR" in os.environ else ""
    report(
        f"`{where}{command} show --project {settings['project']}` shows what is in {TRACKIO_DIR}"
    )
    SQLiteStorage.validate_project_name(settings["project"])
    return TrackioSink(SQLiteStorage, os.environ.get("USER", ""))


if __name__ == "__main__":
    sys.exit(program.main(make_sink))
