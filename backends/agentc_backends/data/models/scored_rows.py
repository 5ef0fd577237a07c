"""Rows of token ids with the log-probabilities that a trained model gave them at the end of its
training, and prompts with their tokens. They lie beside its weights, so that who serves it can see
that it still is that model.

Written by trainers (`trainers/common/scoring.py`), read by `agents/common/agreement.py`; no library
beyond the standard one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from agentc.program.artifact_files import SCORED_FILE


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """One row: `log_probs[i]` is that of `ids[i]` after those before it, None where it was not
    trained and is not compared."""

    ids: list[int]
    log_probs: list[float | None]


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """Messages that wait for a reply, and the tokens that the trainer's encoder makes of them."""

    messages: list[dict[str, str]]
    ids: list[int]


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Rows, the numeric type that the trainer computed in, and prompts."""

    dtype: str
    rows: tuple[ScoredRow, ...]
    prompts: tuple[EncodedPrompt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far two scorings of the same tokens are apart: the mean and the largest of their absolute
    differences."""

    rows: int
    tokens: int
    mean: float
    max: float


def write_scored_rows(directory: Path, scored: ScoredRows) -> None:
    """Write them into a checkpoint's directory, where there are any."""
    if not scored.rows:
        return
    text = json.dumps(asdict(scored), allow_nan=False)
    (directory / SCORED_FILE).write_text(text + "\n", encoding="utf-8")


def read_scored_rows(directory: Path) -> ScoredRows | None:
    """Those of a checkpoint; None where nobody trained it, or where its trainer wrote none."""
    path = directory / SCORED_FILE
    if not path.is_file():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    return ScoredRows(
        record["dtype"],
        tuple(ScoredRow(**row) for row in record["rows"]),
        tuple(EncodedPrompt(**prompt) for prompt in record["prompts"]),
    )


def agreement_of(
    rows: Sequence[ScoredRow], served: Sequence[Sequence[float | None]]
) -> Agreement | None:
    """How a server's log-probabilities of the same rows agree; None where no token is compared."""
    differences = [
        abs(theirs - ours)
        for row, scores in zip(rows, served, strict=True)
        for ours, theirs in zip(row.log_probs, scores, strict=True)
        if ours is not None and theirs is not None
    ]
    if not differences:
        return None
    return Agreement(
        rows=len(rows),
        tokens=len(differences),
        mean=sum(differences) / len(differences),
        max=max(differences),
    )
