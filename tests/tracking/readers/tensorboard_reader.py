"""Prints what TensorBoard's own reader finds in each folder of runs."""

import json
import sys
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

root = Path(sys.argv[2])
found = {}
for folder in sorted({path.parent for path in root.rglob("events.out.tfevents.*")}):
    read = EventAccumulator(str(folder), {"scalars": 0, "tensors": 0}).Reload()
    tags = read.Tags()
    points = {tag: [[e.step, e.value] for e in read.Scalars(tag)] for tag in tags["scalars"]}
    texts = {
        tag: read.Tensors(tag)[-1].tensor_proto.string_val[0].decode() for tag in tags["tensors"]
    }
    name = str(folder.relative_to(root))
    found[name] = {"points": points, "texts": texts, "config": texts.pop("config")}
print(json.dumps(found))
