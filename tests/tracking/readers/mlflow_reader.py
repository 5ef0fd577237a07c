"""Prints what MLflow's client finds in an experiment."""

import json
import os
import sys

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
from mlflow.tracking import MlflowClient

client = MlflowClient(tracking_uri=sys.argv[2])
experiment = client.get_experiment_by_name(sys.argv[1])
found = {}
for run in client.search_runs([experiment.experiment_id]):
    histories = {n: client.get_metric_history(run.info.run_id, n) for n in run.data.metrics}
    points = {name: [[e.step, e.value] for e in each] for name, each in histories.items()}
    texts = {name: value for name, value in run.data.tags.items() if name.startswith("claims/")}
    found[run.info.run_name] = {
        "points": points, "texts": texts, "config": run.data.params, "status": run.info.status,
    }  # fmt: skip
print(json.dumps(found))
