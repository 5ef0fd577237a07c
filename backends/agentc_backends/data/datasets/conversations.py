"""Records -> rows of an SFTDataset (contracts.md, section 4), with counts of what was left out."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agentc_backends.data.datasets.records import (
    DatasetError,
    MalformedError,
    Message,
    messages_of,
)
from agentc_backends.data.datasets.task_ids import TaskIds, task_id_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRules:
    """DATASET_FIELDS of `agentc.kinds.data`, by the same names."""

    format: Literal["messages", "sharegpt", "alpaca"]
    on_malformed: Literal["error", "drop"]
    limit: int | None
    seed: int
    task_ids: TaskIds = "as_written"
    reward: float | None = None
    prompt_length: int | None = None


@dataclass(slots=True)
class ReadCounts:
    """What became of the records. `unanswered` rows lost their last turns, which nobody answers."""

    records: int = 0
    unanswered: int = 0
    malformed: Counter[str] = field(default_factory=Counter)

    def facts(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {
            "records": self.records,
            "rows": len(rows),
            "unanswered": self.unanswered,
            "malformed": dict(sorted(self.malformed.items())),
            "replies": sum(m["role"] == "assistant" for row in rows for m in row["messages"]),
        }


def rows_of(
    records: Iterable[tuple[int, Any]], name: str, rules: ReadRules
) -> tuple[list[dict[str, Any]], ReadCounts]:
    """The rows, in the order of the file, at most `limit` of them; ids are `<name>:<number>`.

    Raises DatasetError at a record that is no conversation (unless such are dropped), and when
    none is one.
    """
    counts = ReadCounts()
    rows = []
    for number, record in records:
        counts.records += 1
        try:
            messages = messages_of(record, rules.format)
            row = _row(f"{name}:{number}", record, messages, rules, counts)
        except MalformedError as error:
            if rules.on_malformed == "error":
                raise DatasetError(
                    f"record {number} of {name} {error}; `format: {rules.format}` cannot read it. "
                    "Set `on_malformed: drop` to leave such records out with a count."
                ) from None
            counts.malformed[str(error)] += 1
            continue
        rows.append(row)
    if not rows:
        raise DatasetError(
            f"none of the {counts.records} records of {name} is a conversation in the format "
            f"`{rules.format}`"
        )
    if rules.limit is not None and rules.limit < len(rows):
        chosen = sorted(random.Random(rules.seed).sample(range(len(rows)), rules.limit))
        rows = [rows[place] for place in chosen]
    return rows, counts


def _row(
    name: str,
    record: dict[str, Any],
    messages: list[Message],
    rules: ReadRules,
    counts: ReadCounts,
) -> dict[str, Any]:
    if messages and messages[-1]["role"] == "user":
        messages = messages[:-1]
        counts.unanswered += 1
    first = _first_reply(messages)
    given = record.get("prompt_length")
    if isinstance(given, int) and 0 < given < len(messages):
        # Rows that agentc has written tell the prompt's own replies from the agent's.
        if messages[given]["role"] != "assistant":
            raise MalformedError("has a `prompt_length` that leads to no reply")
        first = given
    elif rules.prompt_length is not None:
        first = rules.prompt_length
        if first >= len(messages) or messages[first]["role"] != "assistant":
            raise MalformedError(f"has no reply after {first} messages (`prompt_length`)")
    reward = record.get("reward")
    return {
        "id": name,
        "task_id": task_id_of(record, rules.task_ids) or name,
        "messages": messages,
        "prompt_length": first,
        "reward": reward if _is_number(reward) else rules.reward,
        "source": "dataset",
    }


def _first_reply(messages: Sequence[Message]) -> int:
    """The place of the first reply, once turns are known to alternate and to begin with a user."""
    start = 1 if messages and messages[0]["role"] == "system" else 0
    for place, message in enumerate(messages[start:]):
        expected = "assistant" if place % 2 else "user"
        if message["role"] != expected:
            raise MalformedError(f"has {message['role']} where {expected} has its turn")
        if expected == "assistant" and not message["content"].strip():
            raise MalformedError("has an empty reply")
    if len(messages) < start + 2:
        raise MalformedError("holds no reply")
    return start + 1


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
