"""WebShop as an environment of `environments.server`: an episode is a goal, and ends by buying.

Actions are `search[keywords]`, from any page, and `click[text]` of something on the page; any
other action leaves the page as it is. The environment never truncates: the limit belongs to the
rollout. Searches take about a millisecond at a thousand products."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from agentc_backends.environments.server.environment import (
    Answer,
    Dialect,
    EpisodeError,
    MemoryEnvironment,
)
from agentc_backends.environments.webshop import pages
from agentc_backends.environments.webshop.catalogue import Product
from agentc_backends.environments.webshop.expert import ThoughtfulAction, expert_steps
from agentc_backends.environments.webshop.reward import score
from agentc_backends.environments.webshop.settings import WebShopSettings, numbers_of, task_id
from agentc_backends.environments.webshop.shop import Shop

# AgentGym's released client uses `env_idx`, `session_id`, and a bare number for a new session; it
# requests the page by GET /observation.


def _opened(answer: Answer) -> object:
    """A pair; the second was to be for infos, and never is."""
    return [answer["observation"], None]


def _stepped(answer: Answer) -> object:
    return {
        "state": answer["observation"],
        "reward": answer["reward"],
        "done": answer["done"],
        "info": None,
    }


def _available_actions(environment: Any) -> object:
    return environment.available_actions()


WEBSHOP = Dialect(
    session_field="env_idx",
    task_field="session_id",
    bodiless_create=True,
    created=lambda session: session,
    opened=_opened,
    stepped=_stepped,
    queries={"/available_actions": _available_actions},
)


_ACTION = re.compile(r"(.+)\[(.+)\]")
_TASK = re.compile(r"webshop_(0|[1-9][0-9]{0,8})")
_KINDS = frozenset({"search", "results", "item", "detail", "done"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeView:
    """Where an episode stands; a page is a function of it."""

    kind: pages.Kind = "search"
    keywords: str | None = None
    page: int = 1
    asin: str | None = None
    chosen: Mapping[str, str] = field(default_factory=dict)
    detail: str = ""
    reward: float = 0.0


class WebShopShared:
    """What the episodes of a server share."""

    def __init__(self, shop: Shop, settings: WebShopSettings, splits: Mapping[str, str]) -> None:
        self.shop = shop
        self.settings = settings
        numbers = {name: numbers_of(line, shop) for name, line in splits.items()}
        self.splits = {name: tuple(map(task_id, of)) for name, of in numbers.items()}
        self.numbered = tuple(task_id(number) for number in range(len(shop.goals)))
        tasks = json.dumps(self.splits)
        self.digests = {
            "catalogue_sha256": shop.digest,
            "goals_sha256": shop.goals_digest,
            "tasks_sha256": hashlib.sha256(tasks.encode()).hexdigest(),
        }


class WebShopEnvironment(MemoryEnvironment):
    """One episode at a time."""

    name = "webshop"
    title = "WebShop"
    version = "2"
    default_max_steps: ClassVar[int] = 100
    capabilities: ClassVar[frozenset[str]] = frozenset({"expert", "fork", "snapshot"})
    dialect: ClassVar[Dialect] = WEBSHOP

    def __init__(self, world: WebShopShared) -> None:
        self._world = world
        self._number: int | None = None
        self._view = EpisodeView()
        # Of the view's keywords: a search is made once, not again for each page.
        self._found: Sequence[Product] = ()

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._world.splits)

    def tasks(self, split: str) -> Sequence[str]:
        return self._world.splits[split]

    def has_task(self, task_id: str) -> bool:
        return self._number_of(task_id) is not None

    def numbered_tasks(self) -> Sequence[str]:
        return self._world.numbered

    def identity(self) -> dict[str, Any]:
        rules = self._world.settings.rules()
        digests = self._world.digests
        return {"name": self.name, "version": self.version, "options": rules, **digests}

    def reset(self, task_id: str, *, seed: int = 0) -> tuple[str, dict[str, Any]]:
        """Start a goal; no seed changes it (prices come from the catalogue's own seed)."""
        number = self._number_of(task_id)
        if number is None:
            raise EpisodeError(f"WebShop has no task {task_id!r}")
        self._number, self._view, self._found = number, EpisodeView(), ()
        return self._text(), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._open()
        if self._done():
            return self._text(), self._view.reward, True, False, {}
        match = _ACTION.match(action)
        if match and match[1] == "search":
            self._search(match[2].lower())
        elif match and match[1] == "click":
            choice = self._choices().get(match[2].lower())
            if choice is not None:
                self._take(choice)
        return self._text(), self._view.reward, self._done(), False, {}

    def clickables(self) -> tuple[str, ...]:
        """What `click[...]` may name on the page, in lower case."""
        return tuple(self._choices())

    def available_actions(self) -> dict[str, Any]:
        """What a page offers, for AgentGym's clients."""
        self._open()
        searches = self._view.kind == "search"
        clickable = ["search"] if searches else list(self.clickables())
        return {"has_search_bar": searches, "clickables": clickable}

    def expert_steps(self, task_id: str, *, seed: int = 0) -> tuple[ThoughtfulAction, ...]:
        number = self._number_of(task_id)
        if number is None:
            raise EpisodeError(f"WebShop has no task {task_id!r}")
        shop = self._world.shop
        return expert_steps(
            shop,
            shop.goals[number],
            query=self._world.settings.expert_query,
            thoughts=self._world.settings.expert_thoughts,
            case=self._world.settings.expert_case,
            page_size=self._world.settings.page_size,
        )

    def snapshot(self) -> dict[str, Any]:
        number, view = self._open(), self._view
        return {
            "environment": self.name,
            "version": 1,
            "task": number,
            "view": {**asdict(view), "chosen": [list(pair) for pair in view.chosen.items()]},
            "done": view.kind == "done",
        }

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        match snapshot:
            case {"environment": self.name, "version": 1, "task": int(number), "view": dict(view)}:
                restored = self._checked(number, view)
            case _:
                raise ValueError("not a snapshot of a WebShop episode")
        self._number, self._view = number, restored
        keywords = restored.keywords
        self._found = () if keywords is None else self._world.shop.search(keywords)

    def _checked(self, number: int, view: Mapping[str, Any]) -> EpisodeView:
        match view:
            case {
                "kind": str(kind),
                "keywords": str() | None as keywords,
                "page": int(page),
                "asin": str() | None as asin,
                "chosen": list(rows),
                "detail": str(detail),
                "reward": (int() | float()) as reward,
            } if 0 <= number < len(self._world.shop.goals):
                product = self._world.shop.by_asin.get(asin) if asin else None
                chosen = dict(_pair(row) for row in rows)
                fits = (
                    kind in _KINDS
                    and (kind == "search" or keywords is not None)
                    and (product is not None or kind in ("search", "results"))
                    and (detail in pages.DETAILS or kind != "detail")
                    and page >= 1
                    and all(value in (product.options if product else {}).get(name, ())
                            for name, value in chosen.items())
                )  # fmt: skip
                if fits:
                    return EpisodeView(
                        kind=kind,  # type: ignore[arg-type]
                        keywords=keywords,
                        page=page,
                        asin=asin,
                        chosen=chosen,
                        detail=detail,
                        reward=float(reward),
                    )
        raise ValueError("not a snapshot of a WebShop episode with this catalogue")

    def _search(self, keywords: str) -> None:
        self._found = self._world.shop.search(keywords)
        self._view = EpisodeView(kind="results", keywords=keywords)

    def _choices(self) -> dict[str, pages.Click]:
        match self._view.kind:
            case "results":
                size = self._world.settings.page_size
                return pages.results_choices(self._found, self._view.page, size)
            case "item":
                return pages.item_choices(self._product())
            case "detail":
                return pages.detail_choices()
        return {}

    def _take(self, choice: pages.Click) -> None:
        view = self._view
        if choice.does == "open":
            self._view = replace(view, kind="item", asin=choice.target, chosen={})
        elif choice.does == "choose":
            self._view = replace(view, chosen={**view.chosen, choice.target: choice.value})
        elif choice.target == pages.BACK:
            self._view, self._found = EpisodeView(), ()
        elif choice.target == pages.BUY:
            self._buy()
        elif choice.target in pages.DETAILS:
            self._view = replace(view, kind="detail", detail=choice.target)
        elif choice.target == pages.NEXT:
            self._view = replace(view, page=view.page + 1)
        elif view.kind == "results":
            self._view = replace(view, page=view.page - 1)
        elif view.kind == "item":
            self._view = replace(view, kind="results", asin=None, chosen={})
        else:
            self._view = replace(view, kind="item", detail="")

    def _buy(self) -> None:
        goal, bought = self._world.shop.goals[self._open()], self._product()
        price = self._world.shop.prices[bought.asin]
        reward = score(goal, bought, self._view.chosen, price).reward
        self._view = replace(self._view, kind="done", reward=reward)

    def _text(self) -> str:
        asked = self._world.shop.goals[self._open()].instruction
        instruction = asked if self._world.settings.repeat_instruction else None
        view = self._view
        match view.kind:
            case "search":
                return pages.search_page(asked)
            case "results":
                return pages.results_page(
                    instruction, self._found, view.page, self._world.settings.page_size
                )
            case "item":
                return pages.item_page(instruction, self._product())
            case "detail":
                return pages.detail_page(instruction, self._product(), view.detail)
            case "done":
                return pages.done_page(view.reward)

    def _product(self) -> Product:
        asin = self._view.asin
        assert asin is not None
        return self._world.shop.by_asin[asin]

    def _done(self) -> bool:
        return self._view.kind == "done"

    def _open(self) -> int:
        if self._number is None:
            raise EpisodeError("reset the environment before stepping it")
        return self._number

    def _number_of(self, task_id: str) -> int | None:
        match = _TASK.fullmatch(task_id)
        if match is None or int(match[1]) >= len(self._world.shop.goals):
            return None
        return int(match[1])


def _pair(row: object) -> tuple[str, str]:
    match row:
        case [str(name), str(value)]:
            return name, value
    raise ValueError("a chosen option is a name with a value")
