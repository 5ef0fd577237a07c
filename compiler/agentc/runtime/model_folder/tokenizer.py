"""How many embeddings a fast tokenizer needs: its highest token id, plus one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOKENIZER_FILE = "tokenizer.json"
_SETTINGS_FILE = "tokenizer_config.json"
_MOST_BYTES = 1 << 27
"""The largest published tokenizers have 35 MB."""


class TokenizerFileError(Exception):
    """A file of a tokenizer that cannot be read; the message names it."""


def tokens_of(directory: Path) -> int | None:
    """The highest token id of the tokenizer of a directory plus one, added tokens included; None
    where its model lists no tokens. Raises TokenizerFileError, OSError."""
    found = _read(directory / TOKENIZER_FILE)
    model = found.get("model") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(model, dict):
        raise TokenizerFileError(f"{TOKENIZER_FILE} is no fast tokenizer: it has no `model`")
    vocabulary = model.get("vocab")
    highest = -1
    if isinstance(vocabulary, dict):
        highest = max((i for i in vocabulary.values() if _is_id(i)), default=-1)
    elif isinstance(vocabulary, list):
        highest = len(vocabulary) - 1
    ids = [*_added(found.get("added_tokens")), *_added_by_settings(directory / _SETTINGS_FILE)]
    highest = max([highest, *ids])
    return None if highest < 0 else highest + 1


def _added(tokens: Any) -> Iterator[int]:
    for token in tokens if isinstance(tokens, list) else ():
        if isinstance(token, dict) and _is_id(token.get("id")):
            yield token["id"]


def _added_by_settings(path: Path) -> Iterator[int]:
    """Tokens that transformers adds to those of tokenizer.json."""
    if not path.is_file():
        return
    found = _read(path)
    tokens = found.get("added_tokens_decoder") if isinstance(found, dict) else None
    for name in tokens if isinstance(tokens, dict) else ():
        if isinstance(name, str) and name.isascii() and name.isdigit() and len(name) < 10:
            yield int(name)


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise TokenizerFileError(f"{path.name} has more than {_MOST_BYTES >> 20} MiB")
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        if content.startswith(b"version https://git-lfs"):
            raise TokenizerFileError(f"{path.name} is a pointer of Git LFS") from None
        raise TokenizerFileError(f"{path.name} is no JSON") from None


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
