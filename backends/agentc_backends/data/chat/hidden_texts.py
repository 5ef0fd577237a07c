"""HiddenTexts: what a critic may know of each task, as a `privileged` stage collected it.

No message of an exception holds a text, or a part of one. Neighbours: `privileged.py`, which says
where a text stands in a conversation; `unsaid.py`, what of it is a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentc.program.job import read_rows
from agentc_backends.data.chat.privileged import (
    FIRST_MESSAGE,
    Message,
    filled,
    with_privileged,
)
from agentc_backends.data.chat.rows import RowsError
from agentc_backends.data.chat.unsaid import unsaid_runs

WINDOW = 64
"""So many characters in a row of a hidden text are no chance: whoever acts has seen them."""


class HiddenTexts:
    """By task. Raises RowsError where two folders say two things of a task."""

    def __init__(self, folders: Iterable[Path], template: str) -> None:
        self._template = template
        self._texts: dict[str, str] = {}
        for folder in folders:
            for row in read_rows(folder / "privileged.jsonl"):
                if self._texts.setdefault(row["task_id"], row["text"]) != row["text"]:
                    raise RowsError(f"two hidden texts of the task {row['task_id']}")

    def in_front(self, task_id: str, messages: Sequence[Mapping[str, Any]]) -> list[Message]:
        """The conversation with the task's hidden text. Raises RowsError where there is none."""
        return with_privileged(messages, self._template, self._text(task_id))

    def placed(
        self, template_at: str, task_id: str, messages: Sequence[Mapping[str, Any]]
    ) -> tuple[list[Message], str]:
        """The conversation, and the text before its first token: the task's hidden text is in one
        of the two. Raises RowsError where there is none."""
        if template_at == FIRST_MESSAGE:
            return self.in_front(task_id, messages), ""
        return [dict(message) for message in messages], filled(self._template, self._text(task_id))

    def require_unseen(self, task_id: str, opening: Iterable[Mapping[str, Any]]) -> None:
        """Raises RowsError where an episode's opening holds a window of its hidden text, or all of
        a shorter one: whoever acted was told it. Signatures of functions are no secret."""
        size, runs = unsaid_runs(self._text(task_id), WINDOW)
        for message in opening:
            said = message["content"]
            if any(run in said for run in runs):
                raise RowsError(
                    f"the opening of the task {task_id} holds {size} characters of its hidden "
                    "text: whoever acts in this environment is told what only a critic may know"
                )

    def _text(self, task_id: str) -> str:
        text = self._texts.get(task_id)
        if text is None:
            raise RowsError(
                f"there is no hidden text of the task {task_id}; collect them (`privileged`) on "
                "the split of the rollouts, with the same `limit` or none"
            )
        return text
