"""A dialogue about one page: the page as it stands, and what is reported of it.

It knows neither browser nor human; `environment.py` asks both. All of its state is JSON. Neighbour:
`../dialogue.py`, whatever it is about.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from agentc_backends.environments.colbench.dialogue import DialogueRounds, restored_rounds
from agentc_backends.environments.colbench.frontend.pages import PageTask, snippet
from agentc_backends.environments.colbench.frontend.settings import FrontendSettings

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

    def hear(self, action: str) -> tuple[bool, bool]:
        """Whether this reply of the agent is its last, and whether it brings another page."""
        marked = self.rounds.marked(action, self.settings)
        found = snippet(action)
        another = found is not None and found != self.html
        if found is not None:
            self.html, self.page_from = found, "last"
        elif self.html is not None:
            self.page_from = "earlier"
        return marked is not None or self.rounds.is_last(self.settings), another

    def shown(self, refused: Mapping[str, int]) -> None:
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
