"""What tests of post-conditions share: rows on disk, and what `check_artifact` says of them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from agentc.runtime.contracts.artifacts import ContractError, check_artifact


def check(
    artifact: str, data: Path, contract: dict[str, Any] | None = None, **extra: Any
) -> str | None:
    """The message of the violation, or None."""
    try:
        check_artifact(
            artifact, data, contract or {}, extra.get("inputs", {}), extra.get("facts", {})
        )
    except ContractError as error:
        return str(error)
    return None


def write_rows(data: Path, name: str, *rows: Any) -> Path:
    data.mkdir(exist_ok=True)
    (data / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return data


def changed(row: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**copy.deepcopy(row), **fields}
