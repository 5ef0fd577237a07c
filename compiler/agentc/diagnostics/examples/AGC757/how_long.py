"""How many turns a row has."""

import json


def turns(row: str) -> int:
    """Of a row of trajectories.jsonl."""
    return int(json.loads(row)["turns"])
