"""Serves WebShop until SIGTERM: `python -m agentc_backends.webshop.job_serve`.

The server is that of `environment_server`; what is read here are WebShop's own options. Relative
paths start in AGENTC_SPEC_DIR, the folder of the spec, where it is set.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from agentc_backends.environment_server.process import add_server_arguments, serve
from agentc_backends.webshop.environment import WebShopEnvironment, World
from agentc_backends.webshop.expert import CASES, QUERIES, THOUGHTS
from agentc_backends.webshop.pages import PAGE_SIZE
from agentc_backends.webshop.products import CatalogueError
from agentc_backends.webshop.shop import ShopOptions, open_shop
from agentc_backends.webshop.splits import DEFAULT, SplitError, read_splits


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    try:
        open_environment = _opener(given)
    except (CatalogueError, SplitError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return serve(open_environment, given)


def opener(arguments: Sequence[str]) -> Callable[[], WebShopEnvironment]:
    """What opens the environment of these words in the process of whoever calls."""
    return _opener(_parser().parse_args(arguments))


def _opener(given: argparse.Namespace) -> Callable[[], WebShopEnvironment]:
    options = ShopOptions(
        catalogue=given.catalogue,
        attributes=given.attributes,
        instructions=given.instructions,
        products=given.products or None,
        invented_seed=given.invented_seed,
        human_goals=given.human_goals,
        price_seed=given.price_seed,
        shuffle_seed=given.shuffle_seed,
    )
    shop = open_shop(options, _read)
    if given.catalogue_sha256 not in (None, shop.digest):
        raise CatalogueError("the catalogue's files are not those that the plan was made for")
    splits: dict[str, str] = (
        read_splits(DEFAULT, shop, _read) if given.splits is None else json.loads(given.splits)
    )
    world = World(
        shop,
        options,
        splits,
        expert_query=given.expert_query,
        expert_thoughts=given.expert_thoughts,
        expert_case=given.expert_case,
        page_size=given.page_size,
        repeat_instruction=not given.instruction_once,
    )
    # The index is made by the first search: no episode should wait for it.
    shop.search("")
    return partial(WebShopEnvironment, world)


def _read(path: str) -> bytes | None:
    try:
        return Path(os.environ.get("AGENTC_SPEC_DIR", ""), path).expanduser().read_bytes()
    except OSError:
        return None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="webshop.job_serve", description=__doc__)
    add_server_arguments(parser)
    parser.add_argument("--catalogue", help="JSON list of products; default: invented ones")
    parser.add_argument("--attributes", help="JSON: attributes and instruction by product")
    parser.add_argument("--instructions", help="JSON: people's instructions by product")
    parser.add_argument("--catalogue-sha256", help="what the files have to be")
    parser.add_argument("--products", type=int, default=1000, help="0: all of the catalogue")
    parser.add_argument("--invented-seed", type=int, default=0)
    parser.add_argument("--human-goals", action="store_true")
    parser.add_argument("--price-seed", type=int, default=0)
    parser.add_argument("--shuffle-seed", type=int, default=233)
    parser.add_argument("--splits", help="JSON: split -> `own train (N)` or goal numbers")
    parser.add_argument("--expert-query", choices=QUERIES, default="instruction")
    parser.add_argument("--expert-thoughts", choices=THOUGHTS, default="plain")
    parser.add_argument("--expert-case", choices=CASES, default="lower")
    parser.add_argument("--page-size", type=int, default=PAGE_SIZE, help="results on a page")
    parser.add_argument("--instruction-once", action="store_true", help="on the first page alone")
    return parser


if __name__ == "__main__":
    sys.exit(main())
