"""The released WebShop engine, from a checkout of princeton-nlp/WebShop, beside ours in a process.

Its pages, sessions, goals and rewards are its own code. Lucene, torch, gym and spaCy are stood
in for: search answers what the given shop finds, and title nouns come from a given tagger.
"""

from __future__ import annotations

import gzip
import json
import sys
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentc_backends.environments.webshop.catalogue import NO_LIMIT
from agentc_backends.environments.webshop.pages import MOST_RESULTS
from agentc_backends.environments.webshop.settings import ShopOptions
from agentc_backends.environments.webshop.shop import Shop, open_shop

Tagger = Callable[[str], Iterable[Any]]


@dataclass(frozen=True, slots=True)
class Files:
    """WebShop's data: the products, their attributes, people's instructions."""

    catalogue: Path
    attributes: Path
    instructions: Path

    def shop(self, *, by_people: bool = False) -> Shop:
        options = ShopOptions(
            catalogue=str(self.catalogue),
            attributes=str(self.attributes),
            instructions=str(self.instructions) if by_people else None,
            products=None,
            human_goals=by_people,
        )
        return open_shop(options, lambda path: Path(path).read_bytes())


@dataclass(frozen=True, slots=True)
class Noun:
    """A token that counts in titles, as spaCy would hand it out."""

    text: str
    pos_: str = "NOUN"


def files_in(folder: Path) -> Files:
    """The files as they lie in a folder of WebShop's data. Raises SystemExit."""

    def one(*names: str) -> Path:
        for name in names:
            if (folder / name).is_file():
                return folder / name
        raise SystemExit(f"{folder} holds no {' or '.join(names)}")

    return Files(
        one("items_shuffle_1000.json", "items_shuffle_1000.reconstructed.json.gz"),
        one("items_ins_v2_1000.json"),
        one("items_human_ins.json", "items_human_ins_subset13.json"),
    )


def released_server(
    checkout: Path, files: Files, shop: Shop, tagger: Tagger, scratch: Path, *, by_people: bool
) -> Any:
    """The released `SimServer` over the files, with prices and limits of its own draw."""
    _stand_in(shop, tagger)
    sys.path.insert(0, str(checkout))
    from web_agent_site import utils

    catalogue = scratch / "items.json"
    content = files.catalogue.read_bytes()
    catalogue.write_bytes(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    utils.DEFAULT_ATTR_PATH = str(files.attributes)
    utils.HUMAN_ATTR_PATH = str(files.instructions)
    from web_agent_site.envs import web_agent_text_env

    return web_agent_text_env.SimServer(
        "http://127.0.0.1:3000",
        str(catalogue),
        num_products=1000,
        human_goals=by_people,
    )


def released_environment(server: Any) -> Any:
    """The released text environment over a server."""
    from web_agent_site.envs import web_agent_text_env

    return web_agent_text_env.WebAgentTextEnv(observation_mode="text", server=server)


def with_prices_of(server: Any, shop: Shop) -> None:
    """Gives the released server the prices and limits of a shop: as released, each process draws
    its own, so that no two agree."""
    server.product_prices = dict(shop.prices)
    for goal, ours in zip(server.goals, shop.goals, strict=True):
        goal["price_upper"] = ours.price_limit if ours.price_limit < NO_LIMIT else 1000000
        goal["instruction_text"] = ours.instruction


def _stand_in(shop: Shop, tagger: Tagger) -> None:
    class Searcher:
        def __init__(self, folder: str) -> None:
            """Lucene's index folder is not read."""

        def search(self, query: str, k: int) -> list[Any]:
            assert k == MOST_RESULTS
            return [types.SimpleNamespace(docid=product.asin) for product in shop.search(query)]

        def doc(self, number: str) -> Any:
            return types.SimpleNamespace(raw=lambda: json.dumps({"id": number}))

    def module(name: str, **members: Any) -> None:
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)

    module("pyserini")
    module("pyserini.search")
    module("pyserini.search.lucene", LuceneSearcher=Searcher)
    module("spacy", load=lambda name: tagger)
    module("torch")
    module("gym", Env=object)
    module("gym.envs")
    module("gym.envs.registration", register=lambda **given: None)
    # The environment in a browser, which asks for selenium when it is imported.
    module("web_agent_site.envs.web_agent_site_env", WebAgentSiteEnv=object)
