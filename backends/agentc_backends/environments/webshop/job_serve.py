"""Serves WebShop until SIGTERM: `python -m agentc_backends.environments.webshop.job_serve`."""

from __future__ import annotations

import sys
from functools import partial

from agentc_backends.environments.server.program import Opener, program, spec_content
from agentc_backends.environments.webshop.catalogue import CatalogueError
from agentc_backends.environments.webshop.environment import WebShopEnvironment, WebShopShared
from agentc_backends.environments.webshop.settings import DEFAULT, WebShopSettings, read_splits
from agentc_backends.environments.webshop.shop import open_shop


def open_world(settings: WebShopSettings) -> Opener:
    shop = open_shop(settings.shop, spec_content)
    if settings.catalogue_sha256 not in (None, shop.digest):
        raise CatalogueError("the catalogue's files are not those that the plan was made for")
    splits = settings.splits
    if splits == DEFAULT:
        splits = read_splits(DEFAULT, shop, spec_content)
    world = WebShopShared(shop, settings, splits)
    # The index is made by the first search: no episode should wait for it.
    shop.search("")
    return partial(WebShopEnvironment, world)


opener, main = program(WebShopSettings, open_world)

if __name__ == "__main__":
    sys.exit(main())
