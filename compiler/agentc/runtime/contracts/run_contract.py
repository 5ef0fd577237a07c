"""Post-conditions of a PolicyRun: a whole checkpoint, run.json, one row of the curve for each
iteration, episodes whose turns earn what the episode did, and every policy that run.json names."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agentc.runtime.contracts.checkpoint_contract import check_checkpoint
from agentc.runtime.contracts.row_contracts import episode_findings, rows_of, shown

if TYPE_CHECKING:
    from agentc.runtime.contracts.artifacts import Artifact
    from agentc.runtime.contracts.row_contracts import Finding

RUN, CURVE, EPISODES = "run.json", "curve.jsonl", "episodes.jsonl"
KEPT = "checkpoints"


def check_run(artifact: Artifact) -> Iterator[Finding]:
    """All of a run."""
    yield from check_checkpoint(artifact)
    path = artifact.data / RUN
    try:
        run: Any = json.loads(path.read_text(encoding="utf-8"))
        iterations, kept = int(run["iterations"]), list(run["checkpoints"])
    except FileNotFoundError:
        yield (RUN, None, None, "the file is missing")
        return
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        yield (RUN, None, None, f"cannot be read: {error}")
        return
    yield from _curve_findings(artifact, iterations)
    yield from _episode_rows(artifact)
    for iteration in kept:
        folder = artifact.data / KEPT / str(iteration)
        for file, row, field, message in check_checkpoint(artifact._replace(data=folder)):
            yield (f"{KEPT}/{iteration}/{file}", row, field, message)


def _curve_findings(artifact: Artifact, iterations: int) -> Iterator[Finding]:
    try:
        lines = (artifact.data / CURVE).read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line)["iteration"] for line in lines]
    except FileNotFoundError:
        yield (CURVE, None, None, "the file is missing")
        return
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        yield (CURVE, None, "iteration", f"cannot be read: {error}")
        return
    if rows != list(range(iterations)):
        number = next((n for n, row in enumerate(rows) if row != n), len(rows))
        yield (CURVE, number + 1, "iteration", f"expected one row for each of {iterations}")


def _episode_rows(artifact: Artifact) -> Iterator[Finding]:
    last = -1
    for number, row in rows_of(artifact, EPISODES):
        if isinstance(row, str):
            yield (EPISODES, number, None, row)
            continue
        for field, message in episode_findings(row, artifact.contract):
            yield (EPISODES, number, field, message)
        if not isinstance(row.get("attempt"), int) or row["attempt"] <= last:
            yield (EPISODES, number, "attempt", "episodes of a run must ascend")
        else:
            last = row["attempt"]
        for field, message in _turn_findings(row):
            yield (EPISODES, number, field, message)


def _turn_findings(row: Mapping[str, Any]) -> Iterator[Any]:
    earned, tokens = row.get("turn_rewards"), row.get("turn_tokens")
    turns = row.get("turns")
    if not isinstance(earned, list) or len(earned) != turns:
        yield "turn_rewards", f"expected one number for each of {shown(turns)} turns"
    elif earned and not math.isclose(math.fsum(earned), row["reward"], abs_tol=1e-6):
        yield (
            "turn_rewards",
            f"sum to {math.fsum(earned)}, and the episode's reward is {shown(row['reward'])}",
        )
    if not isinstance(tokens, list) or len(tokens) != turns:
        yield "turn_tokens", f"expected those of each of {shown(turns)} turns"
    elif not all(isinstance(each, dict) and isinstance(each.get("reply"), list) for each in tokens):
        yield "turn_tokens", "expected {kept, added, reply, cut} of each turn"
