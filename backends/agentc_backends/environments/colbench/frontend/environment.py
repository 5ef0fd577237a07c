"""ColBench's pages as an environment: an agent works with a human on a page that is seen, not read.

An action is a whole reply. A page in it is rendered (`studio.py`); the human sees the picture and
says what differs (`human.py`). The reward is the similarity of the last page to the wanted one."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, Literal, get_args

from agentc.runtime.browser.process import NoBrowserError
from agentc.runtime.browser.render import Rendered
from agentc_backends.environments.colbench.dialogue import (
    OVER,
    THANKS,
    DialogueEnvironment,
    DialogueRounds,
    DialogueTasks,
    restored_rounds,
)
from agentc_backends.environments.colbench.frontend.human import PageHuman
from agentc_backends.environments.colbench.frontend.invented import InventedPage
from agentc_backends.environments.colbench.frontend.pages import PageTask, digest, snippet
from agentc_backends.environments.colbench.frontend.settings import FrontendSettings
from agentc_backends.environments.colbench.frontend.similarity import small_picture
from agentc_backends.environments.colbench.frontend.studio import PageStudio, UnseenReferenceError
from agentc_backends.environments.server.environment import EnvironmentFailure, HiddenText
from agentc_backends.environments.server.world import ExpertAction

PageFrom = Literal["last", "earlier"]


@dataclass(slots=True)
class PageDialogue:
    """`html` is the page of the last reply that had one, of several in it the first; `renders` how
    many were shown, `refused` what they asked for and was not there."""

    task: PageTask
    settings: FrontendSettings
    rounds: DialogueRounds = field(default_factory=DialogueRounds)
    html: str | None = None
    page_from: PageFrom | None = None
    renders: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    done: bool = False

    def take_action(self, action: str) -> tuple[bool, bool]:
        """Whether this reply of the agent is its last, and whether it brings another page."""
        marked = self.rounds.marked(action, self.settings)
        found = snippet(action)
        another = found is not None and found != self.html
        if found is not None:
            self.html, self.page_from = found, "last"
        elif self.html is not None:
            self.page_from = "earlier"
        return marked is not None or self.rounds.is_last(self.settings), another

    def count_render(self, refused: Mapping[str, int]) -> None:
        """Its page was rendered."""
        self.renders += 1
        for host, count in refused.items():
            self.refused[host] = self.refused.get(host, 0) + count

    def report(self, verdict: str, parts: Mapping[str, float], similarity: float) -> dict[str, Any]:
        """Of the last step: nothing of the reference's source."""
        return {
            "similarity": similarity,
            "parts": dict(parts),
            "render": verdict,
            "renders": self.renders,
            "blocked": dict(sorted(self.refused.items())),
            "answer_from": self.page_from,
            "html_sha256": None if self.html is None else _sha256(self.html),
            "human": self.rounds.report(),
        }

    def saved(self) -> dict[str, Any]:
        return {
            "task_id": self.task.id,
            **self.rounds.saved(),
            "html": self.html,
            "page_from": self.page_from,
            "renders": self.renders,
            "refused": dict(self.refused),
            "done": self.done,
        }


def restored(
    task: PageTask, settings: FrontendSettings, snapshot: Mapping[str, Any]
) -> PageDialogue:
    """What `saved` wrote. Raises ValueError."""
    done = snapshot.get("done")
    rounds = restored_rounds(snapshot, settings.rounds)
    match snapshot:
        case {
            "html": str() | None as html,
            "page_from": str() | None as source,
            "renders": int(renders),
            "refused": dict(refused),
            "done": bool(done),
        } if (
            (source in get_args(PageFrom) if html is not None else source is None)
            and renders >= 0
            and all(isinstance(h, str) and type(n) is int for h, n in refused.items())
        ):
            return PageDialogue(
                task,
                settings,
                rounds,
                html,
                source,  # type: ignore[arg-type]
                renders,
                dict(refused),
                done,
            )
    raise ValueError("not a snapshot of an episode with these options")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class FrontendShared(DialogueTasks[PageTask]):
    """What the episodes of a server share; it never changes."""

    def __init__(
        self,
        settings: FrontendSettings,
        splits: Mapping[str, Sequence[PageTask]],
        invented: Mapping[str, InventedPage],
        studio: PageStudio,
        human: PageHuman,
    ) -> None:
        super().__init__(settings, splits, invented, digest)
        self.settings, self.studio, self.human, self.invented = settings, studio, human, invented


class FrontendEnvironment(DialogueEnvironment[PageTask, PageDialogue]):
    """One episode at a time."""

    name: ClassVar[str] = "colbench_frontend"
    title: ClassVar[str] = "ColBench's pages"

    def __init__(self, world: FrontendShared) -> None:
        super().__init__(world)
        self._world = world
        self._made: Rendered | None = None

    @property
    def success_threshold(self) -> float:
        return self._world.settings.success_at

    def facts(self) -> dict[str, Any]:
        """What renders the pages: another browser or other fonts give other pictures."""
        return {"browser": self._world.studio.facts()}

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        """Start a task; no seed changes it."""
        del seed
        task = self._world.tasks[task_id]
        self._episode, self._made = PageDialogue(task, self._world.settings), None
        return task.description, {"step_limit": self._world.settings.rounds}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Hear one reply of the agent. Raises EnvironmentFailure where the browser, or a human who
        is a model, fails."""
        episode = self._started()
        if episode.done:
            return OVER, 0.0, True, False, {}
        try:
            return self._heard(episode, action)
        except (NoBrowserError, UnseenReferenceError) as error:
            self._episode = None
            raise EnvironmentFailure(str(error)) from error

    def _heard(
        self, episode: PageDialogue, action: str
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        last, another = episode.take_action(action)
        has_page = episode.page_from == "last"
        # A page of an earlier turn counts at the end; meanwhile nobody looks at it.
        made = self._rendered(episode, another) if last or has_page else None
        studio, task = self._world.studio, episode.task
        if last:
            verdict, parts, similarity = studio.compared(task, made)
            episode.done = True
            report = episode.report(verdict, parts, similarity)
            if self._world.settings.pictures:
                report["pictures"] = self._pictures(task, made)
            return THANKS, similarity, True, False, {"report": report}
        human, wanted, round_ = self._world.human, studio.wanted(task), len(episode.rounds.said)
        reply = human.reply(task, round_, wanted, made, again=False)
        again = episode.rounds.refused(task, episode.settings, reply)
        if again:
            reply = human.reply(task, round_, wanted, made, again=True)
        told = episode.rounds.record_reply(task, episode.settings, action, reply, again=again)
        return told, 0.0, False, False, {}

    def expert_steps(self, task_id: str, *, seed: int = 0) -> Sequence[ExpertAction]:
        """Pages, of which the last is the answer; by seed."""
        settings = self._world.settings
        chance = Random(f"expert {seed} {task_id}")
        pages = self._world.invented[task_id].expert(chance, settings.rounds, settings.careless)
        return [
            *map(ExpertAction, pages[:-1]),
            ExpertAction(f"{settings.answer_marker}\n{pages[-1]}"),
        ]

    def hidden_text(self, task_id: str) -> HiddenText:
        """The reference."""
        return HiddenText(self._world.tasks[task_id].reference, "text/html")

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Continue from a snapshot; a malformed one raises ValueError and changes nothing."""
        task = self._saved_task(snapshot)
        self._episode, self._made = restored(task, self._world.settings, snapshot), None

    def _rendered(self, episode: PageDialogue, another: bool) -> Rendered | None:
        """The agent's page; one that is not new is rendered again after a fork alone, and not
        counted."""
        if episode.html is None:
            return None
        if another or self._made is None:
            self._made = self._world.studio.render(episode.html)
        if another:
            episode.count_render(self._made.refused)
        return self._made

    def _pictures(self, task: PageTask, made: Rendered | None) -> dict[str, str]:
        shown = {"wanted": self._world.studio.wanted(task).png, "made": made.png if made else b""}
        return {
            name: base64.b64encode(small_picture(png)).decode()
            for name, png in shown.items()
            if png
        }
