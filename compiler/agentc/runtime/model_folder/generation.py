"""generation_config.json of a model: the tokens that end a reply."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from agentc.runtime.model_folder.config import (
    CONFIG_FILE,
    MOST_BYTES,
    ConfigFileError,
    of_text,
    read_config,
)
from agentc.runtime.model_folder.folder_fault import FolderFault

GENERATION_FILE = "generation_config.json"


def generation_faults(
    directory: Path,
    names: Collection[str],
    config: Mapping[str, Any],
    rows: int | None,
    shown: str,
) -> list[FolderFault]:
    """What is wrong with the ends of replies in config.json and generation_config.json; `rows` of
    the embeddings. Raises OSError."""
    settings: Mapping[str, Any] = {}
    if GENERATION_FILE in names:
        with (directory / GENERATION_FILE).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        try:
            settings = read_config(content)
        except ConfigFileError as error:
            fix = "correct it, or remove it: without it, replies end as config.json says"
            message = f"{shown}: {GENERATION_FILE} cannot be understood: {error}"
            return [FolderFault(message, fix)]
    for name, written in (
        (GENERATION_FILE, settings.get("eos_token_id")),
        (CONFIG_FILE, of_text(config, "eos_token_id")),
    ):
        wrong = _wrong_end(written, rows)
        if wrong:
            return [
                FolderFault(
                    f"{shown}: {name} has {wrong}",
                    "write the id that tokenizer.json gives the token that ends a reply, or a "
                    "list of such ids",
                )
            ]
    return []


def _wrong_end(written: Any, rows: int | None) -> str:
    ends = written if isinstance(written, list) else [] if written is None else [written]
    for end in ends:
        if not isinstance(end, int) or isinstance(end, bool) or end < 0:
            shown = json.dumps(end)[:60]
            return f"an `eos_token_id` of {shown}, which is no token id"
        if rows is not None and end >= rows:
            return f"an `eos_token_id` of {end}, but the embeddings have {rows} rows"
    return ""
