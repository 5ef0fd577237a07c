"""The program of MLflow: runs of an experiment, through its client."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agentc.runtime.tracking import program
from agentc.runtime.tracking.sink import HeldSteps, TrackedRun

_TAG = "agentc.run"
_UNSAFE = re.compile(r"[^\w\-. /]")
"""What no name of a param or tag may have; those of metrics are safe already."""
_LONGEST = 5000
"""Characters of a param's value."""
_AT_ONCE = 1000
"""Metrics of one request; params are fewer."""
_PARAMS_AT_ONCE = 100


class MlflowSink:
    """`ids` are MLflow's own of the runs that are open."""

    def __init__(self, client: Any, artifacts: str | None) -> None:
        self._client, self._artifacts = client, artifacts
        self._experiments: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._waiting: dict[str, list[Any]] = {}

    def open(self, run: TrackedRun) -> HeldSteps:
        from mlflow.entities import Param

        experiment = self._experiment(run.project)
        found = self._client.search_runs([experiment], f"tags.`{_TAG}` = '{run.id}'")
        if found:
            known = self._ids[run.id] = found[0].info.run_id
            self._client.update_run(known, status="RUNNING")
            return {
                name: {each.step for each in self._client.get_metric_history(known, name)}
                for name in found[0].data.metrics
            }
        tags = {_TAG: run.id, "group": run.group, "kind": run.kind, "tags": ", ".join(run.tags)}
        made = self._client.create_run(experiment, run_name=run.name, tags=tags)
        self._ids[run.id] = made.info.run_id
        params = [Param(name, text[:_LONGEST]) for name, text in _params(run.config)]
        for first in range(0, len(params), _PARAMS_AT_ONCE):
            self._client.log_batch(made.info.run_id, params=params[first : first + _PARAMS_AT_ONCE])
        return {}

    def log(self, run: TrackedRun, step: int, numbers: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        waiting = self._waiting.setdefault(self._ids[run.id], [])
        waiting += [Metric(name, value, now, step) for name, value in numbers.items()]

    def send_text(self, run: TrackedRun, title: str, text: str, words: Mapping[str, str]) -> None:
        own = self._ids[run.id]
        self._client.log_text(own, text, f"{title}.md")
        for name, word in words.items():
            self._client.set_tag(own, _named(f"{title}/{name}"), word)

    def finish(self, run: TrackedRun) -> None:
        self.flush()
        self._client.set_terminated(self._ids.pop(run.id))

    def flush(self) -> None:
        for own, metrics in self._waiting.items():
            for first in range(0, len(metrics), _AT_ONCE):
                self._client.log_batch(own, metrics=metrics[first : first + _AT_ONCE])
        self._waiting.clear()

    def close(self) -> None:
        self.flush()
        for own in self._ids.values():
            self._client.set_terminated(own, status="KILLED")

    def _experiment(self, name: str) -> str:
        if name not in self._experiments:
            found = self._client.get_experiment_by_name(name)
            self._experiments[name] = (
                self._client.create_experiment(name, artifact_location=self._artifacts)
                if found is None
                else found.experiment_id
            )
        return self._experiments[name]


def _named(name: str) -> str:
    return _UNSAFE.sub("_", name)


def _params(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from _params(inner, f"{before}{name}.")
        else:
            text = inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)
            yield _named(before + name), text


def make_sink(
    settings: Mapping[str, Any], folder: Path, report: Callable[[str], None]
) -> MlflowSink:
    """At the address of the settings, else in a database in the tracker's own folder."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    uri = settings.get("uri")
    if not uri:
        folder.mkdir(parents=True, exist_ok=True)
        uri = f"sqlite:///{folder.absolute()}/mlflow.db"
    if uri.startswith("file:"):
        # MLflow 3 asks whoever uses it to say that they know of its end.
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    from mlflow.tracking import MlflowClient

    # A server and a folder know where artifacts go; a database would put them where we stand.
    local = uri.startswith("sqlite:")
    artifacts = (folder.absolute() / "artifacts").as_uri() if local else None
    report(f"`mlflow ui --backend-store-uri {uri}` shows it")
    return MlflowSink(MlflowClient(tracking_uri=uri), artifacts)


if __name__ == "__main__":
    sys.exit(program.main(make_sink))
