"""The stage program of the workflow tools: reads its arguments with care, pretends to train."""

import argparse
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, required=True)
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--scheduler", choices=("linear", "cosine", "constant"), default="linear")
parser.add_argument("--warmup-ratio", type=float, default=0.0)
parser.add_argument("--global-batch", type=int, default=8)
parser.add_argument("--micro-batch", type=int, default=4)
parser.add_argument("--out", type=Path, required=True)
asked = parser.parse_args()
if asked.global_batch % asked.micro_batch:
    parser.error(f"a batch of {asked.global_batch} is no multiple of {asked.micro_batch}")
rows = asked.data.read_text().splitlines()
asked.out.parent.mkdir(parents=True, exist_ok=True)
asked.out.write_text(f"trained on {len(rows)} rows\n")
