"""`python -m benchmarks.sweet_pairs --seeds 0`: what pairs of the tiny spec prefer.

Of specs/sweet_rl/tiny.yaml. A reply is an answer, a question about the kind that has a price and
is not told yet (useful), or another question. Counts how many pairs of a ranking prefer a useful
question, and how many the other one; reads what `benchmarks.sweet_seeds` has left in the store.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agentc.backend_api import load_backends
from agentc.compilation import compile_spec
from benchmarks.reduced import ROOT

SPEC = ROOT / "specs" / "sweet_rl" / "tiny.yaml"
STAGES = ("pairs", "pairs_without_hidden", "pairs_by_head", "pairs_summed", "pairs_random")
Sort: TypeAlias = Literal["answer", "useful", "other"]
_QUESTION = re.compile(r'Is "(\w+)" priced')
_PRICE = re.compile(r'\{"(\w+)": \d+')
_TOLD = "Yes,"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 with the table on standard output."""
    parser = argparse.ArgumentParser(prog="benchmarks.sweet_pairs", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--spec", type=Path, default=SPEC)
    parser.add_argument("--store", type=Path, default=ROOT / ".agentc" / "store")
    options = parser.parse_args(arguments)
    counts: dict[str, Counter[tuple[Sort, Sort]]] = {stage: Counter() for stage in STAGES}
    for seed in options.seeds:
        plan = compile_spec(options.spec, {"seed": str(seed)}, load_backends()).plan
        assert plan is not None
        folders = {job.id: options.store / "objects" / job.object / "data" for job in plan.jobs}
        priced = {
            row["task_id"]: priced_kind(row["text"])
            for row in _rows(folders["hidden"] / "privileged.jsonl")
        }
        for stage, found in counts.items():
            for pair in _rows(folders[stage] / "pairs.jsonl"):
                kind = priced[pair["task_id"]]
                chosen, rejected = (
                    sort_of(pair["prompt"], pair[side][0]["content"], kind)
                    for side in ("chosen", "rejected")
                )
                found[chosen, rejected] += 1
    print("\n".join(table(counts)))
    return 0


def priced_kind(reference: str) -> str:
    """The kind that a reference prices."""
    found = _PRICE.search(reference)
    assert found is not None
    return found[1]


def sort_of(history: Sequence[Mapping[str, Any]], reply: str, priced: str) -> Sort:
    """What a reply is, behind that history."""
    asked = _QUESTION.search(reply)
    if asked is None:
        return "answer"
    told = any(each["role"] == "user" and _TOLD in each["content"] for each in history[1:])
    return "useful" if asked[1] == priced and not told else "other"


def table(counts: Mapping[str, Counter[tuple[Sort, Sort]]]) -> list[str]:
    """Markdown lines."""
    lines = [
        "| pairs | all | useful question over another | another over a useful one "
        "| two others | with an answer |",
        "|---|---|---|---|---|---|",
    ]
    for stage, found in counts.items():
        answers = sum(count for sorts, count in found.items() if "answer" in sorts)
        lines.append(
            f"| `{stage}` | {found.total()} | {found['useful', 'other']} "
            f"| {found['other', 'useful']} | {found['other', 'other']} | {answers} |"
        )
    return lines


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


if __name__ == "__main__":
    sys.exit(main())
