"""WebShop's settings: what a spec may write, and what the server is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from agentc_backends.environments.server.settings import rules_of, setting
from agentc_backends.environments.webshop.pages import MOST_RESULTS, PAGE_SIZE
from agentc_backends.environments.webshop.splits import DEFAULT

FILES = ("catalogue", "attributes", "instructions")


# fmt: off
@dataclass(frozen=True, slots=True, kw_only=True)
class ShopOptions:
    """What makes the shop. Without `catalogue`, one is invented."""

    catalogue: str | None = setting(
        "WebShop's list of products (`items_shuffle*.json`, or .gz); null: an invented catalogue "
        "in the same form, for the real texts are not ours to ship.", None)
    attributes: str | None = setting(
        "Attributes and generated instructions of its products (`items_ins_v2*.json`).", None)
    instructions: str | None = setting(
        "Instructions that people wrote (`items_human_ins.json`).", None)
    products: int | None = setting(
        "How many products: the first of the catalogue, or as many to invent; null: all.", 1000,
        minimum=1, null_was=0)
    invented_seed: int = setting("Seed of the invented catalogue.", 0, seed=True)
    human_goals: bool = setting(
        "Goals from people's instructions instead of generated ones.", False)
    price_seed: int = setting(
        "Seed of prices where a product has a range, and of the price limits of goals; as "
        "released, each process draws others.", 0, seed=True)
    shuffle_seed: int = setting(
        "Seed of the order of goals; with the released one, goals have the numbers of published "
        "lists.", 233, seed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebShopSettings(ShopOptions):
    # What a server is told are goals' numbers, however they are written.
    splits: Mapping[str, Any] = setting(
        "Goals of each split: `{own: train}` (or dev, test: no product is in two of them), "
        "`{range: [0, 500]}` (the end is left out), `{ids: [...]}` or `{file: path}` (a list of "
        "numbers or of items like webshop_31), each with `except: [other split]`, and `repeated: "
        "drop` where a list has a goal twice. Splits that share a goal are refused.", DEFAULT,
        rule=False)
    expert_query: Literal["instruction", "title"] = setting(
        "What the expert searches for: the instruction where that finds the product, or always "
        "the product's title.", "instruction")
    expert_thoughts: Literal["plain", "options", "none"] = setting(
        "Thoughts of the expert: a plain sentence for each action; for options alone, with their "
        "names (`color: gray`, as in instructions); or none.", "plain")
    expert_case: Literal["lower", "shown"] = setting(
        "Letters of the expert's actions: lower case, as in published trajectories, or as the "
        "page shows them, which is easier to copy. Clicks heed no case.", "lower")
    page_size: int = setting(
        "Results on a page; ten as released. Fewer make observations shorter.", PAGE_SIZE,
        minimum=1, maximum=MOST_RESULTS)
    repeat_instruction: bool = setting(
        "Show the instruction on every page, as released, or on the first page alone.", True)
    catalogue_sha256: str | None = setting("What the files have to be.", None, in_spec=False)

    @property
    def shop(self) -> ShopOptions:
        return ShopOptions(**{each.name: getattr(self, each.name) for each in fields(ShopOptions)})

    def rules(self) -> dict[str, Any]:
        """What the identity says of them; what files hold shows in digests, wherever they lie."""
        return {**rules_of(self), **{name: getattr(self, name) is not None for name in FILES}}
