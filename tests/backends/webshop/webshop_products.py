"""Products made for tests, and shops of them."""

from __future__ import annotations

import json
from typing import Any

from agentc_backends.environments.webshop.environment import WebShopEnvironment, WebShopShared
from agentc_backends.environments.webshop.settings import ShopOptions, WebShopSettings
from agentc_backends.environments.webshop.shop import Shop, open_shop


def row(asin: str, **given: Any) -> dict[str, Any]:
    """A product of the released schema; `options` are lists of values by name."""
    options = given.pop("options", {})
    values = {name: [{"value": value} for value in of] for name, of in options.items()}
    return {
        "asin": asin,
        "name": "Plain Desk Lamp",
        "full_description": "",
        "small_description": ["Sheds light."],
        "category": "garden",
        "query": "desk lamps",
        "product_category": "Home › Lighting › Desk Lamps",
        "pricing": "$24.00",
        "customization_options": values,
        **given,
    }


def shop_of(rows: list[dict[str, Any]], known: dict[str, Any], **settings: Any) -> Shop:
    files = {"rows": json.dumps(rows).encode(), "known": json.dumps(known).encode()}
    options = ShopOptions(catalogue="rows", attributes="known", products=None, **settings)
    return open_shop(options, files.get)


def asked(*attributes: str, has: tuple[str, ...] = ()) -> dict[str, Any]:
    """What is known of a product that some goal asks for."""
    return {
        "attributes": [*attributes, *has],
        "instruction": f"Find me {', '.join(attributes)} desk lamps",
        "instruction_attributes": list(attributes),
    }


def environment_of(shop: Shop, **settings: Any) -> WebShopEnvironment:
    numbers = f"0-{len(shop.goals) - 1}" if len(shop.goals) > 1 else "0"
    return WebShopEnvironment(WebShopShared(shop, WebShopSettings(**settings), {"test": numbers}))
