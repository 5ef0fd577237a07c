"""The token mask of trainings: the rows that a trainer scored at its end (`agentc_log_probs.json`),
each token as text, with its log-probability where it was in the loss.

Texts come from the `tokenizer.json` beside the weights; no library of tokenizers is needed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agentc.program.artifact_files import SCORED_FILE
from agentc_backends.results.report.collect import Collection, ExperimentJob, anchor

ROWS = 3
"""Of each training."""
_TOKENIZER = "tokenizer.json"
_SPACE = "\u2581"
"""How SentencePiece writes a space."""
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_STEPS = (-0.1, -0.5, -1.5, -4.0)
"""Log-probabilities that part the five colours of trained tokens."""


def trained_rows(collection: Collection) -> list[dict[str, Any]]:
    """`{"name", "anchor", "rows": [[{"text", "level", "hint"}]]}` of each training with scored
    rows; `level` is None for what was masked, else 0 (likely) to 4."""
    found = []
    for node in collection.of_type("Checkpoint"):
        rows = list(_rows(node))
        if rows:
            found.append({"name": node.name, "anchor": anchor(node), "rows": rows})
    return found


def _rows(node: ExperimentJob) -> Iterator[list[dict[str, Any]]]:
    folder = node.folder / "data"
    # A model of a folder has the file of its own training, which is not this experiment's.
    if not node.steps or not (folder / SCORED_FILE).is_file():
        return
    pieces = token_texts(folder / _TOKENIZER)
    if not pieces:
        return
    for row in node.document(SCORED_FILE)["rows"][:ROWS]:
        yield spans(row["ids"], row["log_probs"], pieces)


def spans(
    ids: Sequence[int], log_probs: Sequence[float | None], pieces: Mapping[int, bytes]
) -> list[dict[str, Any]]:
    """A row as texts: masked tokens together, trained ones each by itself, together only where one
    letter is of several."""
    found: list[dict[str, Any]] = []
    held, scores = b"", []  # type: bytes, list[float]
    for number, (token, score) in enumerate(zip(ids, log_probs, strict=True)):
        held += pieces.get(token, b"?")
        scores += [] if score is None else [score]
        after = log_probs[number + 1] if number + 1 < len(ids) else None
        ends = number + 1 == len(ids) or (after is None) != (score is None)
        if ends or (score is not None and _is_whole(held)):
            found.append(_span(held, scores))
            held, scores = b"", []
    return found


def _span(text: bytes, scores: Sequence[float]) -> dict[str, Any]:
    shown = text.decode("utf-8", "replace")
    if not scores:
        return {"text": shown, "level": None, "hint": ""}
    level = sum(min(scores) < step for step in _STEPS)
    return {"text": shown, "level": level, "hint": f"log-probability {sum(scores):.3f}"}


def _is_whole(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def token_texts(path: Path) -> dict[int, bytes]:
    """The bytes of each token of a `tokenizer.json`; empty where there is none, or none that is
    known here."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        vocabulary = document["model"]["vocab"]
        if isinstance(vocabulary, dict):
            words = {int(number): str(word) for word, number in vocabulary.items()}
        else:
            words = {number: str(entry[0]) for number, entry in enumerate(vocabulary)}
        added = {int(each["id"]): str(each["content"]) for each in document["added_tokens"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    by_letter = _letters() if "ByteLevel" in json.dumps(document.get("decoder")) else None
    found = {number: _bytes(word, by_letter) for number, word in words.items()}
    return found | {number: text.encode("utf-8") for number, text in added.items()}


def _bytes(word: str, by_letter: Mapping[str, int] | None) -> bytes:
    if by_letter is not None:
        return b"".join(
            bytes([by_letter[letter]]) if letter in by_letter else letter.encode("utf-8")
            for letter in word
        )
    byte = _BYTE.fullmatch(word)
    return bytes([int(byte[1], 16)]) if byte else word.replace(_SPACE, " ").encode("utf-8")


@cache
def _letters() -> dict[str, int]:
    """The byte that each letter of GPT-2's byte-level vocabulary represents."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    known = {chr(byte): byte for byte in plain}
    return known | {chr(256 + place): byte for place, byte in enumerate(others)}
