"""Records -> rows of an SFTDataset or pairs of PreferencePairs (contracts.md, section 4), with
counts of what was left out."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from agentc.kinds.models import RecordReading, TaskIds
from agentc_backends.data.chat.tool_calls import CALL_OPENS
from agentc_backends.data.datasets.layouts import (
    DataConversation,
    DataPair,
    read_layout,
)
from agentc_backends.data.datasets.records import (
    DataRecord,
    DatasetError,
    FieldError,
    Fields,
    Ledger,
    MalformedError,
    OtherFormatError,
)
from agentc_backends.data.datasets.turns import Message, TurnReader

_DROP = "correct it, or set `on_malformed: drop` to leave such conversations out with a count"


@dataclass(slots=True)
class ReadCounts:
    """What became of the records. `unanswered` rows lost their last turns, which nobody answers.
    `marked` replies are marked as not trained, and `early` ones are part of a row's prompt."""

    ledger: Ledger
    records: int = 0
    unanswered: int = 0
    marked: int = 0
    early: int = 0
    malformed: Counter[str] = field(default_factory=Counter)

    def facts(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {
            "records": self.records,
            "rows": len(rows),
            "unanswered": self.unanswered,
            "malformed": dict(sorted(self.malformed.items())),
            "replies": sum(m["role"] == "assistant" for row in rows for m in messages_of(row)),
            "ignored_fields": dict(sorted(self.ledger.ignored.items())),
            "unused_fields": dict(sorted(self.ledger.unused.items())),
        }

    def absent(self) -> list[str]:
        """Names in `ignore_fields` that no record has."""
        return sorted(self.ledger.ignore - {*self.ledger.ignored})

    def warnings(self) -> list[str]:
        """What a person should know of rows that were made all the same."""
        found = []
        if self.malformed:
            reasons = "; ".join(f"{reason} ({n})" for reason, n in self.malformed.most_common(5))
            dropped = sum(self.malformed.values())
            found.append(f"{dropped} of {self.records} records were dropped: {reasons}")
        if absent := self.absent():
            found.append(f"`ignore_fields` names what no record has: {', '.join(absent)}")
        if self.marked:
            found.append(
                f"{self.marked} replies are marked as not trained; only a training with "
                "`loss_on: marked` leaves them out"
            )
        if self.early:
            found.append(
                f"{self.early} replies are part of a `prompt`; a training with `loss_on: "
                "all_replies`, the default, trains them too, `loss_on: after_prompt` does not"
            )
        return found


class RowReader:
    """Makes rows of the records of one file, and counts what it leaves out."""

    def __init__(self, file: str, rules: RecordReading) -> None:
        self.file, self.rules = file, rules
        self._name = PurePath(file).stem
        self.counts = ReadCounts(Ledger(frozenset(rules.ignore_fields)))
        self._turns = TurnReader(
            f"`format: {rules.format}`", self.counts.ledger, rules.reasoning == "think"
        )
        self._made = 0
        self.first_malformed: DatasetError | None = None

    def row(self, record: DataRecord) -> dict[str, Any] | None:
        """The row of a record; None where it is dropped. Raises DatasetError."""
        self.counts.records += 1
        place = f"{self.file}:{record.line}: record {record.number}"
        try:
            row = self._row(f"{self._name}:{record.number}", record.value)
            self._made += 1
            return row
        except OtherFormatError as error:
            fix = error.fix
            if self._made:
                fix = f"move such records into a file of their own, and {fix} in a stage for it"
            raise DatasetError(f"{place} {error}", fix) from None
        except FieldError as error:
            raise DatasetError(f"{place} {error}", error.fix, error.unread) from None
        except MalformedError as error:
            trouble = DatasetError(f"{place} {error}", error.fix or _DROP)
            if self.rules.on_malformed == "error":
                raise trouble from None
            self.first_malformed = self.first_malformed or trouble
            self.counts.malformed[str(error)] += 1
            return None

    def require_rows(self, rows: int) -> None:
        """Raises DatasetError where no record became a row."""
        if rows:
            return
        reason = (
            f"none of the {self.counts.records} records of {self.file} can be read in the format "
            f"`{self.rules.format}`"
        )
        first = self.first_malformed
        if first is None:
            raise DatasetError(reason)
        raise DatasetError(f"{reason}; {first.reason}", "" if first.fix == _DROP else first.fix)

    def require_ignored(self) -> None:
        """Raises DatasetError where `ignore_fields` names what no record has, which is a slip."""
        if absent := self.counts.absent():
            names = ", ".join(f"`{name}`" for name in absent)
            raise DatasetError(
                f"`ignore_fields` names {names}, which no record of {self.file} has",
                f"remove {names}, or correct the spelling",
            )

    def _row(self, name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise MalformedError("is not an object")
        fields = Fields(value, self.counts.ledger)
        meant = read_layout(fields, self.rules.format, self._turns)
        task = task_id_of(fields, self.rules.task_ids) or name
        if isinstance(meant, DataPair):
            made = self._pair(name, task, meant)
        else:
            made = self._conversation(name, task, meant, fields)
        fields.finish(self._turns.what)
        return made

    def _pair(self, name: str, task: str, pair: DataPair) -> dict[str, Any]:
        for side in (pair.chosen, pair.rejected):
            require_alternating([*pair.prompt, *side])
            if not side or side[-1]["role"] != "assistant":
                raise MalformedError("has a side that does not end with a reply")
        if pair.chosen[0]["role"] != "assistant" or pair.rejected[0]["role"] != "assistant":
            raise MalformedError("has sides that differ before the first reply")
        if pair.chosen == pair.rejected:
            raise MalformedError("has the same text on both sides")
        chosen, rejected = pair.scores
        return {
            "id": name,
            "task_id": task,
            "prompt": pair.prompt,
            "chosen": pair.chosen,
            "rejected": pair.rejected,
            "chosen_reward": chosen,
            "rejected_reward": rejected,
            "outcome": "self",
            "chosen_id": f"{name}:chosen",
            "rejected_id": f"{name}:rejected",
        }

    def _conversation(
        self, name: str, task: str, meant: DataConversation, fields: Fields
    ) -> dict[str, Any]:
        messages = meant.messages
        answered = len(messages)
        while answered and messages[answered - 1]["role"] in ("user", "tool"):
            answered -= 1
        if answered and answered < len(messages):
            messages = messages[:answered]
            self.counts.unanswered += 1
        require_alternating(messages)
        first = self._first_reply(messages, meant.prompt_length, fields)
        replies = [m for m in messages if m["role"] == "assistant"]
        self.counts.marked += sum(reply.get("loss") is False for reply in replies)
        if meant.prompt_length is not None:
            self.counts.early += sum(m["role"] == "assistant" for m in messages[:first])
        row = {
            "id": name,
            "task_id": task,
            "messages": messages,
            "prompt_length": first,
            "reward": self._reward(fields),
            "source": "dataset",
        }
        # Rows that agentc wrote say what their policy saw of the conversation.
        for own in ("memory", "forgotten"):
            if fields.has(own):
                row[own] = fields.take(own)
        if row.get("memory", "last") != "last" or not isinstance(row.get("forgotten", 0), int):
            raise FieldError('has a `memory` other than "last", or a `forgotten` that is no number')
        return row

    def _first_reply(self, messages: Sequence[Message], fixed: int | None, fields: Fields) -> int:
        """The place of the first reply that is the record's own."""
        first = next((at for at, m in enumerate(messages) if m["role"] == "assistant"), None)
        if first is None:
            raise MalformedError("holds no reply")
        written = fields.take("prompt_length") if fields.has("prompt_length") else None
        if written is not None:
            # Rows that agentc has written tell the prompt's own replies from the agent's.
            if not isinstance(written, int) or not _is_reply(messages, written):
                raise MalformedError("has a `prompt_length` that leads to no reply")
            return written
        if self.rules.prompt_length is not None:
            first = self.rules.prompt_length
            if not _is_reply(messages, first):
                raise MalformedError(f"has no reply after {first} messages (`prompt_length`)")
            return first
        if fixed is not None:
            if not _is_reply(messages, fixed):
                raise MalformedError("has a completion that does not begin with a reply")
            return fixed
        return first

    def _reward(self, fields: Fields) -> float | None:
        reward = fields.take("reward")
        if reward is None:
            return self.rules.reward
        if not isinstance(reward, (int, float)) or isinstance(reward, bool):
            raise FieldError(f"has a `reward` that is no number: {reward!r}")
        return reward


def rows_of(
    records: Iterable[DataRecord], file: str, rules: RecordReading
) -> tuple[list[dict[str, Any]], ReadCounts]:
    """The rows, in the order of the file, at most `limit` of them; ids are the file's stem and the
    record's number.

    Raises DatasetError at a record that is no conversation (unless such are dropped), at a field
    that would be lost, and when no record is left.
    """
    reader = RowReader(file, rules)
    rows = [row for record in records if (row := reader.row(record)) is not None]
    reader.require_rows(len(rows))
    if rules.limit is not None and rules.limit < len(rows):
        chosen = sorted(random.Random(rules.seed).sample(range(len(rows)), rules.limit))
        rows = [rows[place] for place in chosen]
    return rows, reader.counts


def messages_of(row: dict[str, Any]) -> list[Message]:
    """All messages of a row; of a pair, those of both sides."""
    if "messages" in row:
        messages: list[Message] = row["messages"]
        return messages
    return [*row["prompt"], *row["chosen"], *row["rejected"]]


def require_alternating(messages: Sequence[Message]) -> None:
    """Raises MalformedError unless user (or a call's result) and assistant alternate behind an
    optional system message, and no reply is empty."""
    start = 1 if messages and messages[0]["role"] == "system" else 0
    called = bool(start and messages[0].get("tools"))
    for place, message in enumerate(messages[start:]):
        role = message["role"]
        expected = "assistant" if place % 2 else "user"
        if role == "tool" and place and expected == "user":
            if not (called or CALL_OPENS in messages[start + place - 1]["content"]):
                raise MalformedError("has a result of a function where none is called")
        elif role != expected:
            raise MalformedError(f"has {role} where {expected} has its turn")
        if expected == "assistant" and not message["content"].strip():
            raise MalformedError("has an empty reply")


def _is_reply(messages: Sequence[Message], place: int) -> bool:
    return 0 < place < len(messages) and messages[place]["role"] == "assistant"


# Ids of tasks in published records, as agentc's environments have them. The trajectories of ETO's
# authors (the hub's `agent-eto/eto-sft-trajectory`) name a goal of WebShop by its number, a
# variation of ScienceWorld by `<task>_<variation>`, and a game of ALFWorld by the path of its file.


SCIWORLD_TASKS = (
    "boil",
    "change-the-state-of-matter-of",
    "freeze",
    "melt",
    "measure-melting-point-known-substance",
    "measure-melting-point-unknown-substance",
    "use-thermometer",
    "power-component",
    "power-component-renewable-vs-nonrenewable-energy",
    "test-conductivity",
    "test-conductivity-of-unknown-substances",
    "find-animal",
    "find-living-thing",
    "find-non-living-thing",
    "find-plant",
    "grow-fruit",
    "grow-plant",
    "chemistry-mix",
    "chemistry-mix-paint-secondary-color",
    "chemistry-mix-paint-tertiary-color",
    "lifespan-longest-lived",
    "lifespan-longest-lived-then-shortest-lived",
    "lifespan-shortest-lived",
    "identify-life-stages-1",
    "identify-life-stages-2",
    "inclined-plane-determine-angle",
    "inclined-plane-friction-named-surfaces",
    "inclined-plane-friction-unnamed-surfaces",
    "mendelian-genetics-known-plant",
    "mendelian-genetics-unknown-plant",
)
"""By ETO's number: the names of ScienceWorld 1.0, `task-1-boil` and so on, in the order of text."""


def task_id_of(fields: Fields, ids: TaskIds) -> str | None:
    """The task of a record; None where it names none. Raises MalformedError where it should, and
    FieldError for a `task_id` that is no text."""
    if ids == "as_written":
        task = fields.take("task_id")
        if isinstance(task, int) and not isinstance(task, bool):
            task = str(task)
        if task is not None and not isinstance(task, str):
            raise FieldError(f"has a `task_id` that is no text: {task!r}")
        return task or None
    name, read = _READERS[ids]
    written = fields.take(name)
    found = read("" if written is None else str(written))
    if found is None:
        raise MalformedError(f"has no `{name}` that `task_ids: {ids}` can read")
    return found


def _webshop(written: str) -> str | None:
    match = re.fullmatch(r"(?:webshop_)?(\d+)", written)
    return match and f"webshop_{int(match[1])}"


def _sciworld(written: str) -> str | None:
    match = re.fullmatch(r"(\d{1,2})_(\d+)", written)
    if match is None or int(match[1]) >= len(SCIWORLD_TASKS):
        return None
    return f"{SCIWORLD_TASKS[int(match[1])]}:{int(match[2])}"


def _alfworld(written: str) -> str | None:
    match = re.search(r"([^/]+)/(trial_T[0-9_]+)(?:/game\.tw-pddl)?/?$", written)
    return match and f"{match[1]}/{match[2]}"


_READERS: Mapping[str, tuple[str, Callable[[str], str | None]]] = {
    "eto_webshop": ("id", _webshop),
    "eto_sciworld": ("id", _sciworld),
    "eto_alfworld": ("game_file", _alfworld),
}
"""The field of a record that names its task, and how."""
