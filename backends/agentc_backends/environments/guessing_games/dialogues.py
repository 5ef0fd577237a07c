"""Reads recorded dialogues: (secret, question, answer) triples of a JSON or JSONL file.

Three layouts: ArCHer's (`conversation`, `word`), LMRL-Gym's (`lines`, `word`) and rows of our own
(`secret`, `question`, `answer`). `oracles.py` searches them.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from agentc_backends.environments.guessing_games.secrets import Guessable


class DialoguesError(ValueError):
    """The file is not what it should be; the message says how it should look."""


def read_dialogues(content: bytes, guessable: Guessable) -> tuple[tuple[str, str, str], ...]:
    """All answered questions about secrets of this game, in the file's order. Dialogues about
    other secrets are left out. Raises DialoguesError, also where nothing is left."""
    try:
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        rows = _rows(content.decode("utf-8"))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DialoguesError(
            f"recorded dialogues are JSON or JSONL, gzipped or not: {error}"
        ) from error
    found = tuple(triple for row in rows for triple in _triples(row, guessable))
    if not found:
        raise DialoguesError(
            "no recorded dialogue is about a secret of this game; expected rows "
            '{"secret", "question", "answer"}, {"conversation", "word"} or {"lines", "word"}'
        )
    return found


def _rows(text: str) -> list[Any]:
    if text.lstrip().startswith("["):
        whole = json.loads(text)
        return whole if isinstance(whole, list) else []
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _triples(row: object, guessable: Guessable) -> Iterator[tuple[str, str, str]]:
    if not isinstance(row, Mapping):
        return
    secret = _secret(row.get("secret", row.get("word")), guessable)
    if secret is None:
        return
    question, answer = row.get("question"), row.get("answer")
    if isinstance(question, str) and isinstance(answer, str):
        yield secret, question, answer
    lines = row.get("conversation", row.get("lines"))
    for line in lines if isinstance(lines, list) else ():
        # One text holds both; an answer follows the last mark that is followed by one.
        question, mark, answer = str(line).partition("? ")
        if mark and answer.strip():
            yield secret, f"{question}?", answer.strip()


def _secret(word: object, guessable: Guessable) -> str | None:
    """The id: words are a name, `city,country`, or a list of names."""
    if isinstance(word, list):
        found = (_secret(one, guessable) for one in word)
        return next((one for one in found if one is not None), None)
    if not isinstance(word, str):
        return None
    return guessable.named(word) or guessable.named(word.split(",")[0].split(";")[0])
