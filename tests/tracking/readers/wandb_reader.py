"""Prints what W&B's files hold, which `wandb sync` would send."""

import json
import sys
from pathlib import Path

from wandb.proto.wandb_internal_pb2 import Record

from agentc_backends.trackers.job_wandb import read_run, records

found = {}
folder = Path(sys.argv[2]) / "wandb"
for path in sorted(folder.glob("offline-run-*/run-*.wandb")):
    run_id = path.stem.removeprefix("run-")
    about = {}
    for text in records(path.read_bytes()):
        record = Record()
        record.ParseFromString(text)
        if record.WhichOneof("record_type") == "run":
            about = {item.key: json.loads(item.value_json) for item in record.run.config.update}
            name, project = record.run.display_name, record.run.project
    assert project == sys.argv[1]
    written = read_run(folder, run_id)
    points: dict = {}
    for row in written.rows:
        for metric in row.keys() - {"step"}:
            points.setdefault(metric, []).append([row["step"], row[metric]])
    texts = {n: v for n, v in written.summary.items() if n.startswith("claims/")}
    found[name] = {"points": points, "texts": texts, "config": about}
print(json.dumps(found))
