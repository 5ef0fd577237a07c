"""What both of ColBench's environments share: a dialogue with a human in rounds, the guard of the
human's replies, the environment around a dialogue, and the tasks that a server reads.

A dialogue's state is JSON. `environment.py` judges code by tests, `frontend/environment.py` pages
by their similarity."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from agentc_backends.data.chat.hidden_texts import secret_windows
from agentc_backends.environments.colbench.tasks import Task, read_rules, resolve
from agentc_backends.environments.server.environment import EpisodeError
from agentc_backends.environments.server.program import spec_content
from agentc_backends.environments.server.settings import rules_of
from agentc_backends.environments.server.splits import TasksError

ANSWER_NOW = "Answer now."
"""Ends the human's last reply, where that is asked for: an agent cannot see otherwise that one
more question costs everything."""
_COUNTED = ("unknown", "cut", "code_like")


class DialogueTask(Protocol):
    """What is asked about: `description` is what the agent is told, `reference` what the human
    knows."""

    @property
    def id(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def reference(self) -> str: ...


class DialogueSettings(Protocol):
    """Of both environments."""

    @property
    def rounds(self) -> int: ...
    @property
    def answer_marker(self) -> str: ...
    @property
    def reply_chars(self) -> int: ...
    @property
    def guard(self) -> str: ...
    @property
    def announce_last(self) -> bool: ...


@dataclass(slots=True)
class DialogueRounds:
    """`said` are the rounds so far: the agent's reply, and the human's as the agent read it."""

    said: list[tuple[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))

    def marked(self, action: str, settings: DialogueSettings) -> str | None:
        """What a reply of the agent gives as its answer, None where it gives none: what follows
        the first marker, up to the next."""
        _, marker, after = action.partition(settings.answer_marker)
        return after.partition(settings.answer_marker)[0] if marker else None

    def is_last(self, settings: DialogueSettings) -> bool:
        """Whether the next reply of the agent is."""
        return len(self.said) + 1 >= settings.rounds

    def refused(self, task: DialogueTask, settings: DialogueSettings, reply: str) -> bool:
        """Whether a human's reply holds code and none is to be told."""
        return settings.guard == "refuse" and _code_starts(reply, task) is not None

    def record_reply(
        self,
        task: DialogueTask,
        settings: DialogueSettings,
        action: str,
        reply: str,
        *,
        again: bool = False,
    ) -> str:
        """Takes the human's reply to an action; returns it as the agent reads it. `again`: what
        was said first was refused."""
        self.counts["unknown"] += _does_not_know(reply)
        start = _code_starts(reply, task)
        self.counts["code_like"] += again or start is not None
        if start is not None:
            if settings.guard == "cut":
                reply = reply[:start].rstrip()
            elif settings.guard == "refuse":
                reply = REFUSAL
        if len(reply) > settings.reply_chars:
            self.counts["cut"] += 1
            reply = reply[: settings.reply_chars]
        if settings.announce_last and len(self.said) + 2 == settings.rounds:
            reply = f"{reply} {ANSWER_NOW}"
        self.said.append((action, reply))
        return reply

    def report(self) -> dict[str, int]:
        """Of the human."""
        return {"replies": len(self.said), **self.counts}

    def saved(self) -> dict[str, Any]:
        return {"said": [list(each) for each in self.said], "counts": dict(self.counts)}


def restored_rounds(snapshot: Mapping[str, Any], most: int) -> DialogueRounds:
    """What `saved` wrote, of fewer than `most` rounds. Raises ValueError."""
    match snapshot:
        case {"said": list(said), "counts": dict(counts)} if len(said) < most:
            return DialogueRounds([_round(each) for each in said], _counts(counts))
    raise ValueError("not a snapshot of an episode with these options")


def _code_starts(reply: str, task: DialogueTask) -> int | None:
    return code_starts(reply, task.reference, task.description)


def _does_not_know(reply: str) -> bool:
    text = reply.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return "do not know" in text or "don't know" in text


def _round(each: object) -> tuple[str, str]:
    match each:
        case [str(action), str(reply)]:
            return action, reply
    raise ValueError("a round is the agent's reply and the human's")


def _counts(counts: Mapping[str, Any]) -> dict[str, int]:
    found = {name: counts.get(name) for name in _COUNTED}
    if set(counts) != set(_COUNTED) or not all(type(n) is int and n >= 0 for n in found.values()):
        raise ValueError("the counts of a snapshot are whole numbers")
    return {name: int(number or 0) for name, number in found.items()}


# The guard: how much of the reference is in a human's reply. A human who knows the code need not
# write any.

WINDOW = 40
"""So many characters of the reference in a row are code. Shorter references count whole."""
REFUSAL = "I cannot write code."


def code_starts(reply: str, reference: str, description: str) -> int | None:
    """Where in a reply the reference's own characters begin, None where it has too few in a row.
    What the task's description says too, and signatures, the agent sees anyway."""
    size, runs = secret_windows(reference, WINDOW, description)
    places = (at for at in range(len(reply) - size + 1) if reply[at : at + size] in runs)
    return next(places, None)


OVER = "The episode is over."
THANKS = "Thank you."


class EpisodeSettings(Protocol):
    """Of both environments."""

    @property
    def rounds(self) -> int: ...
    @property
    def is_invented(self) -> bool: ...
    @property
    def human_prompt_sha256(self) -> str | None: ...


class SavedDialogue(Protocol):
    """An episode that can be written down."""

    def saved(self) -> dict[str, Any]: ...


TaskT = TypeVar("TaskT", bound=DialogueTask)
EpisodeT = TypeVar("EpisodeT", bound=SavedDialogue)


class DialogueTasks(Generic[TaskT]):
    """The tasks that the episodes of a server share, and who of them can be solved by an expert;
    they never change."""

    def __init__(
        self,
        settings: EpisodeSettings,
        splits: Mapping[str, Sequence[TaskT]],
        invented: Collection[str],
        digest: Callable[[Mapping[str, Sequence[TaskT]]], str],
    ) -> None:
        self.splits = {name: tuple(task.id for task in tasks) for name, tasks in splits.items()}
        self.tasks = {task.id: task for tasks in splits.values() for task in tasks}
        self.numbered = tuple(self.tasks)
        self.digest = digest(splits)
        self.rules, self.has_expert = settings, bool(invented)


class DialogueEnvironment(Generic[TaskT, EpisodeT]):
    """One episode at a time."""

    name: ClassVar[str]
    title: ClassVar[str]
    version: ClassVar[str] = "1"
    reward_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reward_kind: ClassVar[str] = "terminal"
    blocking: ClassVar[bool] = True
    resets_on_create: ClassVar[bool] = False
    reported: ClassVar[tuple[str, ...]] = ("step_limit", "report")

    def __init__(self, played: DialogueTasks[TaskT]) -> None:
        self._played = played
        self._episode: EpisodeT | None = None

    @property
    def default_max_steps(self) -> int:
        return self._played.rules.rounds

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._played.splits)

    @property
    def capabilities(self) -> frozenset[str]:
        # Nobody writes an expert for real tasks: one that reads the reference would leak it.
        own = {"expert"} if self._played.has_expert else set()
        return frozenset({"fork", "snapshot", "privileged", *own})

    def tasks(self, split: str) -> Sequence[str]:
        return self._played.splits[split]

    def has_task(self, task_id: str) -> bool:
        return task_id in self._played.tasks

    def numbered_tasks(self) -> Sequence[str]:
        return self._played.numbered

    def identity(self) -> dict[str, Any]:
        rules = self._played.rules
        return {
            "name": self.name,
            "version": self.version,
            "options": {**rules_of(rules), "invented": rules.is_invented},
            "tasks_sha256": self._played.digest,
            "human_prompt_sha256": rules.human_prompt_sha256,
        }

    def snapshot(self) -> dict[str, Any]:
        """The whole episode as JSON values. The task is named by its id: nothing of its reference
        is in it."""
        return {"environment": self.name, "version": 1, **self._started().saved()}

    def close(self) -> None:
        """An episode holds memory only."""

    def _saved_task(self, snapshot: Mapping[str, Any]) -> TaskT:
        """The task of a snapshot. Raises ValueError where it is none of this environment."""
        match snapshot:
            case {"environment": self.name, "version": 1, "task_id": str(task_id)} if (
                task_id in self._played.tasks
            ):
                return self._played.tasks[task_id]
        raise ValueError(f"not a snapshot of {self.title} with these options")

    def _started(self) -> EpisodeT:
        if self._episode is None:
            raise EpisodeError("reset the environment before stepping it")
        return self._episode


# Tasks and texts from files, as they were when the spec was compiled (`declaration.py`).


class ServedTasks(Protocol):
    """Settings of both environments."""

    @property
    def tasks(self) -> str: ...
    @property
    def splits(self) -> Mapping[str, Any]: ...
    @property
    def tasks_sha256(self) -> str | None: ...


def served_splits(
    settings: ServedTasks,
    own: Sequence[Task] | None,
    read: Callable[[bytes, str], Sequence[Task]],
    digest: Callable[[Mapping[str, Sequence[Task]]], str],
) -> dict[str, tuple[Task, ...]]:
    """The tasks of each split; `own` are invented ones. Raises TasksError, SplitError."""

    def tasks_of(file: str | None) -> Sequence[Task]:
        if file is None and own is not None:
            return own
        path = file or settings.tasks
        content = spec_content(path)
        if content is None:
            raise TasksError(f"there is no file {path} that can be read")
        return read(content, path)

    found = resolve(read_rules(settings.splits), tasks_of)
    if settings.tasks_sha256 not in (None, digest(found)):
        raise TasksError("the files hold other tasks than when the spec was compiled")
    return found


def checked_text(path: str | None, sha256: str | None, own: str) -> str:
    """A file's text, or our own where none is named. Raises ValueError."""
    if path is None:
        return own
    content = spec_content(path) or b""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"{path} is not what it was when it was compiled")
    return content.decode("utf-8")
