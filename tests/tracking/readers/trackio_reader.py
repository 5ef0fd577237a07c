"""Prints what trackio has of a project, by its own API: runs, configs, points."""

import json
import os
import sys

project, folder = sys.argv[1:]
os.environ["TRACKIO_DIR"] = folder
import trackio  # noqa: E402
from trackio.sqlite_storage import SQLiteStorage  # noqa: E402

found = {}
for run in trackio.Api().runs(project):
    points: dict = {}
    texts = {}
    for row in SQLiteStorage.get_logs(project, run.name, run_id=run.id):
        for name, value in row.items():
            if isinstance(value, dict):
                texts[name] = value["_value"]
            elif name not in ("step", "timestamp"):
                points.setdefault(name, []).append([row["step"], value])
    found[run.name] = {"points": points, "texts": texts, "config": run.config}
print(json.dumps(found))
