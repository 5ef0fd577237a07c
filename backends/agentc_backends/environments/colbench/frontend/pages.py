"""What a task is (a description and the wanted page), which part of a reply is a page, and the
stylesheet that ColBench's pages link."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentc_backends.environments.colbench.tasks import task_id
from agentc_backends.environments.server.splits import TasksError, read_rows

TAILWIND = "tailwindcss@2.2.19/dist/tailwind.min.css"
"""In the address that pages of ColBench link."""
_WHOLE = re.compile(r"<html\b.*?</html\s*>", re.DOTALL | re.IGNORECASE)
_BODY = re.compile(r"<body\b.*?</body\s*>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PageTask:
    """`description` is all that the agent is told; `reference`, the source of a page, is what the
    human has in mind."""

    id: str
    description: str
    reference: str


def page_task(description: str, reference: str) -> PageTask:
    return PageTask(task_id(description, reference), description, reference)


def read_pages(content: bytes, where: str) -> tuple[PageTask, ...]:
    """The tasks of a JSONL file. Raises TasksError."""
    return read_rows(content, where, _page)


def snippet(reply: str) -> str | None:
    """The first whole page of a reply: `<html>` to `</html>`, else `<body>` to `</body>`. One that
    is cut off is none."""
    found = _WHOLE.search(reply) or _BODY.search(reply)
    return None if found is None else found[0]


def digest(splits: Mapping[str, Iterable[PageTask]]) -> str:
    """Of all that tasks are, split by split."""
    whole = [[name, [task.id for task in tasks]] for name, tasks in sorted(splits.items())]
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()


def _page(row: Any, where: str) -> PageTask:
    match row:
        case {
            "problem_description": str(description),
            "ground_truth": str(reference),
        } if description.strip() and reference.strip():
            return page_task(description, reference)
    raise TasksError(f"{where} is no task; expected `problem_description` and `ground_truth`")


TAILWIND_FILE = "tailwind.min.css"
TAILWIND_SHA256 = "b6ad97402eddb903e7a5d7a73ee47a679204efbdda4521a391cbad9df509b932"
