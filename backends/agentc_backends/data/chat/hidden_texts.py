"""Hidden texts of tasks, as a `privileged` stage collected them, and their place in a critic's
prompt. No message of an exception holds a text, or a part of one. Imports nothing heavy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from agentc.program.artifact_files import PRIVILEGED_FILE
from agentc.program.job import read_rows
from agentc_backends.data.chat.formats import RowsError

WINDOW = 64
"""So many characters in a row of a hidden text are no chance: whoever acts has seen them."""


class HiddenTexts:
    """By task. Raises RowsError where two folders say two things of a task."""

    def __init__(self, folders: Iterable[Path], template: str) -> None:
        self._template = template
        self._texts: dict[str, str] = {}
        for folder in folders:
            for row in read_rows(folder / PRIVILEGED_FILE):
                if self._texts.setdefault(row["task_id"], row["text"]) != row["text"]:
                    raise RowsError(f"two hidden texts of the task {row['task_id']}")

    def prepend(self, task_id: str, messages: Sequence[Mapping[str, Any]]) -> list[Message]:
        """The conversation with the task's hidden text. Raises RowsError where there is none."""
        return with_privileged(messages, self._template, self._text(task_id))

    def place(
        self, template_at: str, task_id: str, messages: Sequence[Mapping[str, Any]]
    ) -> tuple[list[Message], str]:
        """The conversation, and the text before its first token: the task's hidden text is in one
        of the two. Raises RowsError where there is none."""
        if template_at == FIRST_MESSAGE:
            return self.prepend(task_id, messages), ""
        return [dict(message) for message in messages], fill_template(
            self._template, self._text(task_id)
        )

    def require_unseen(self, task_id: str, opening: Iterable[Mapping[str, Any]]) -> None:
        """Raises RowsError where an episode's opening holds a window of its hidden text, or all of
        a shorter one: whoever acted was told it. Signatures of functions are no secret."""
        size, runs = secret_windows(self._text(task_id), WINDOW)
        for message in opening:
            said = message["content"]
            if any(run in said for run in runs):
                raise RowsError(
                    f"the opening of the task {task_id} holds {size} characters of its hidden "
                    "text: anyone who acts in this environment is informed what only a critic "
                    "may know"
                )

    def _text(self, task_id: str) -> str:
        text = self._texts.get(task_id)
        if text is None:
            raise RowsError(
                f"there is no hidden text of the task {task_id}; collect them (`privileged`) on "
                "the split of the rollouts, with the same `limit` or none"
            )
        return text


# A critic's training and its later use fill templates by the same functions: another prefix would
# be another critic. The template is in a critic's `agentc_critic.json`.

PLACE = "{privileged}"
"""Where a template has the hidden text."""
FIRST_MESSAGE = "first_message"
"""The template stands in the first message; else before the conversation's first token."""

Message: TypeAlias = dict[str, Any]


def with_privileged(
    messages: Sequence[Mapping[str, Any]], template: str, text: str
) -> list[Message]:
    """The conversation with the filled template before its first message's text, inside the same
    message, so that every chat template takes it; an empty line stands between."""
    prefix = fill_template(template, text)
    first, *rest = (dict(message) for message in messages)
    return [{**first, "content": f"{prefix}\n\n{first['content']}"}, *rest]


def fill_template(template: str, text: str) -> str:
    """The template with the hidden text. Not by `format`: hidden code is full of braces, and so
    may a template be."""
    return template.replace(PLACE, text)


_SIGNATURE = re.compile(
    r"^[ \t]*(?:async[ \t]+)?def[ \t]+\w+[ \t]*\((?:[^()]|\([^()]*\))*\)[^:\n]*:",
    re.MULTILINE,
)


def secret_windows(text: str, size: int, told: str = "") -> tuple[int, frozenset[str]]:
    """How long a run is, and all of them: `size` characters, or all of a shorter text. Runs that
    also stand in a signature or in `told`, which are no secrets, are none."""
    parts = [part.strip() for part in _SIGNATURE.split(text)]
    told = "\n".join([told, *_SIGNATURE.findall(text)])
    size = min(size, max(map(len, parts)))
    if not size:
        return 0, frozenset()
    starts = ((part, start) for part in parts for start in range(len(part) - size + 1))
    runs = {part[start : start + size] for part, start in starts}
    return size, frozenset(run for run in runs if run not in told)
