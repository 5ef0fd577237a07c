"""Post-conditions of turns with candidates, drawn (`sample`) and ranked (`rank`), and what both
kinds of rows are called and seeded by.

A row is one turn (docs/design/contracts.md, section 4). Findings are those of `row_contracts`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentc.program.artifact_files import CANDIDATES_FILE, CRITIC_FILE, SCORES_FILE, TURNS_FILE
from agentc.runtime.contracts.row_contracts import (
    abbreviated,
    is_finite,
    is_integer,
    message_findings,
    reward_findings,
    rows_of,
)

if TYPE_CHECKING:
    from agentc.runtime.contracts.artifacts import Artifact
    from agentc.runtime.contracts.row_contracts import Finding

TURN_ENDS = ("sampled", "overflow", "error")
SCORE_ENDS = ("scored", "overflow", "error")
_SAME = 1e-6
"""So far from what its scores give an advantage may be."""
ABOVE_ZERO = 1e-5
"""So far above zero rounding may take a log-probability."""


def turn_id(task: str, attempt: int, turn: int, given: int | None = None) -> str:
    """The name of a turn, counted from 0; `given` is the number of the input that its episode
    stands in, where there are several."""
    episode = str(attempt) if given is None else f"{given}.{attempt}"
    return f"{task}#{episode}@{turn}"


def candidate_seed(seed: int, name: str, number: int) -> int:
    """The sampling seed of candidate `number` of the turn of that name, derived by sha256 from the
    stage's seed: 31 bits, since some servers keep no more."""
    text = f"candidate/1/{seed}/{number}/{name}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def check_candidates(artifact: Artifact) -> Iterator[Finding]:
    """Turns with so many candidates each, unless their prompt was too long or servers failed."""
    name = CANDIDATES_FILE
    for number, row in rows_of(artifact, name):
        if isinstance(row, str):
            yield (name, number, None, row)
            continue
        for field, message in _turn_findings(row, artifact.contract):
            yield (name, number, field, message)


def check_scores(artifact: Artifact) -> Iterator[Finding]:
    """What one model made of candidates: a sum of log-probabilities and a count for each."""
    name = SCORES_FILE
    for number, row in rows_of(artifact, name):
        if isinstance(row, str):
            yield (name, number, None, row)
            continue
        if row.get("end") not in SCORE_ENDS:
            yield (name, number, "end", f"{abbreviated(row.get('end'))} is no end of scores")
        scores = row.get("scores")
        if not isinstance(scores, list) or bool(scores) is not (row.get("end") == "scored"):
            yield (name, number, "scores", "expected a list, empty unless scored")
            continue
        for place, score in enumerate(scores):
            for message in _score_findings(score):
                yield (name, number, "scores", f"candidate {place}: {message}")


def check_rewarded(artifact: Artifact) -> Iterator[Finding]:
    """Turns whose candidates have finite advantages, which follow from their scores; with a head
    they are its values."""
    name = TURNS_FILE
    notes = _critic_notes(artifact)
    by_sum = notes.get("normalisation") == "none"
    head = notes.get("parameterisation") == "value_head"
    for number, row in rows_of(artifact, name):
        if isinstance(row, str):
            yield (name, number, None, row)
            continue
        for field, message in _turn_findings(row, artifact.contract):
            yield (name, number, field, message)
        candidates = row.get("candidates")
        if not isinstance(candidates, list):
            continue
        values: list[float] = []
        for place, candidate in enumerate(candidates):
            found = _value_findings(candidate) if head else _reward_findings(candidate, by_sum)
            for message in found:
                yield (name, number, "candidates", f"candidate {place}: {message}")
            value: Any = candidate.get("advantage") if isinstance(candidate, dict) else None
            if is_finite(value):
                values.append(value)
        spread = max(values) - min(values) if values else 0.0
        if not is_finite(row.get("spread")) or abs(row["spread"] - spread) > _SAME:
            yield (
                name,
                number,
                "spread",
                f"is {abbreviated(row.get('spread'))}, not {spread:g}",
            )


def _critic_notes(artifact: Artifact) -> Mapping[str, Any]:
    """What the critic of the job says of itself; nothing where there is none."""
    for folder in artifact.inputs.get("critic", []):
        path = Path(folder) / CRITIC_FILE
        if path.is_file():
            notes: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return notes
    return {}


def _value_findings(candidate: Any) -> Iterator[str]:
    """Of a candidate that a head valued: `critic` is {value}, which is its advantage, and there is
    no reference."""
    if not isinstance(candidate, dict):
        return  # said already
    told = candidate.get("critic")
    value: Any = told.get("value") if isinstance(told, dict) else None
    if not is_finite(value):
        yield f"critic: expected {{value}}, a number, found {abbreviated(told)}"
    elif candidate.get("advantage") != value:
        yield f"advantage is {abbreviated(candidate.get('advantage'))}, but its value is {value:g}"
    if "reference" in candidate:
        yield "reference: a head's value is compared with none"


def _reward_findings(candidate: Any, by_sum: bool) -> Iterator[str]:
    if not isinstance(candidate, dict):
        return  # said already
    wrong = False
    for model in ("critic", "reference"):
        for message in _score_findings(candidate.get(model)):
            wrong = True
            yield f"{model}: {message}"
    value: Any = candidate.get("advantage")
    if not is_finite(value):
        yield f"advantage: expected a number, found {abbreviated(value)}"
    elif not wrong:
        ours, theirs = (
            each["sum"] / (1 if by_sum else each["n"])
            for each in (candidate["critic"], candidate["reference"])
        )
        if abs(value - (ours - theirs)) > _SAME:
            yield f"advantage is {value:g}, but its scores give {ours - theirs:g}"


def _score_findings(score: Any) -> Iterator[str]:
    if not isinstance(score, dict):
        yield f"expected {{sum, n}}, found {abbreviated(score)}"
        return
    if not is_integer(score.get("n")) or score["n"] < 1:
        yield f"n: expected the number of tokens, found {abbreviated(score.get('n'))}"
    if not is_finite(score.get("sum")) or score["sum"] > ABOVE_ZERO:
        yield f"sum: expected a sum of log-probabilities, found {abbreviated(score.get('sum'))}"


def _turn_findings(row: Mapping[str, Any], contract: Mapping[str, Any]) -> Iterator[Any]:
    yield from _identity_findings(row)
    prompt = row.get("prompt")
    wrong = list(message_findings(prompt))
    for message in wrong:
        yield "prompt", message
    if not wrong and isinstance(prompt, list) and prompt[-1]["role"] == "assistant":
        yield "prompt", "ends with the agent's message; the candidates are what comes next"
    for message in reward_findings(row.get("reward"), contract, nullable=True):
        yield "reward", message
    if not isinstance(row.get("taken"), str):
        yield "taken", f"expected text, found {abbreviated(row.get('taken'))}"
    end, candidates = row.get("end"), row.get("candidates")
    if end not in TURN_ENDS:
        yield "end", f"{abbreviated(end)} is not one of {', '.join(TURN_ENDS)}"
    if not isinstance(candidates, list):
        yield "candidates", f"expected a list, found {abbreviated(candidates)}"
        return
    wanted = contract.get("candidates") if end == "sampled" else 0
    if wanted is not None and len(candidates) != wanted:
        yield "candidates", f"{len(candidates)}, expected {wanted} where the turn is {end}"
    for place, candidate in enumerate(candidates):
        for message in _candidate_findings(candidate):
            yield "candidates", f"candidate {place}: {message}"
        yield from _seed_findings(row, place, candidate, contract.get("seed"))
    texts = {c.get("text") for c in candidates if isinstance(c, dict)}
    if row.get("candidates_unique") != len(texts):
        yield (
            "candidates_unique",
            f"is {abbreviated(row.get('candidates_unique'))}, but {len(texts)} texts differ",
        )


def _identity_findings(row: Mapping[str, Any]) -> Iterator[Any]:
    """`id` is made of the task, the attempt, the turn and the input."""
    task, attempt, turn = (row.get(field) for field in ("task_id", "attempt", "turn"))
    if not all(is_integer(number) and number >= 0 for number in (attempt, turn)):  # type: ignore[operator]
        yield (
            "turn",
            f"expected attempt and turn as numbers from 0, found {abbreviated(attempt)} and "
            f"{abbreviated(turn)}",
        )
        return
    expected = turn_id(str(task), attempt, turn, row.get("input"))  # type: ignore[arg-type]
    if row.get("id") != expected:
        yield "id", f"expected {expected!r}, found {abbreviated(row.get('id'))}"


def _seed_findings(
    row: Mapping[str, Any], place: int, candidate: Any, seed: int | None
) -> Iterator[Any]:
    """The seed of a candidate comes from the stage's seed, the turn and its place."""
    if seed is None or not isinstance(candidate, dict):
        return
    expected, actual = candidate_seed(seed, str(row.get("id")), place), candidate.get("seed")
    if actual != expected:
        message = f"candidate {place}: seed {abbreviated(actual)}, expected {expected}"
        yield "candidates", message


def _candidate_findings(candidate: Any) -> Iterator[str]:
    if not isinstance(candidate, dict):
        yield f"expected an object, found {abbreviated(candidate)}"
        return
    if not isinstance(candidate.get("text"), str):
        yield f"text: expected text, found {abbreviated(candidate.get('text'))}"
    tokens = candidate.get("tokens")
    if not isinstance(tokens, list) or not tokens or not all(map(is_integer, tokens)):
        yield f"tokens: expected the ids of at least one token, found {abbreviated(tokens)}"
    elif candidate.get("logprob_n") != len(tokens):
        yield f"logprob_n is {abbreviated(candidate.get('logprob_n'))} for {len(tokens)} tokens"
    total = candidate.get("logprob_sum")
    if not is_finite(total) or total > ABOVE_ZERO:  # type: ignore[operator]
        yield f"logprob_sum: expected a sum of log-probabilities, found {abbreviated(total)}"
