"""Declares `env.webshop`: WebShop behind the AgentGym protocol, served by `job_serve.py`.

Catalogue and splits are resolved here, so that lists which share a goal are a compile error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from agentc.backend_api import EnvironmentBackend, LeaseDraft, OptionView
from agentc.kinds.field import (
    Field,
    Json,
    boolean,
    choice,
    integer,
    seed,
    string,
)
from agentc_backends.software import LIGHT
from agentc_backends.webshop.expert import CASES, THOUGHTS
from agentc_backends.webshop.pages import MOST_RESULTS, PAGE_SIZE
from agentc_backends.webshop.released import PRODUCTS_1000
from agentc_backends.webshop.splits import DEFAULT, OWN, SplitError, read_splits, size

if TYPE_CHECKING:
    from agentc_backends.webshop.shop import Shop, ShopOptions

FIELDS: tuple[Field, ...] = (
    string("catalogue", "WebShop's list of products (`items_shuffle*.json`, or .gz); null: an "
           "invented catalogue in the same form, for the real texts are not ours to ship.", None,
           nullable=True),
    string("attributes", "Attributes and generated instructions of its products "
           "(`items_ins_v2*.json`).", None, nullable=True),
    string("instructions", "Instructions that people wrote (`items_human_ins.json`).", None,
           nullable=True),
    integer("products", "How many products: the first of the catalogue, or as many to invent; "
            "null: all.", 1000, minimum=1, nullable=True),
    seed("invented_seed", "Seed of the invented catalogue."),
    boolean("human_goals", "Goals from people's instructions instead of generated ones.", False),
    seed("price_seed", "Seed of prices where a product has a range, and of the price limits of "
            "goals; as released, each process draws others."),
    seed("shuffle_seed", "Seed of the order of goals; with the released one, goals have the "
            "numbers of published lists.", 233),
    Field(name="splits", schema={"type": "object"}, default=dict(DEFAULT),
          doc="Goals of each split: `{own: train}` (or dev, test: no product is in two of them), "
          "`{range: [0, 500]}` (the end is left out), `{ids: [...]}` or `{file: path}` (a list of "
          "numbers or of items like webshop_31), each with `except: [other split]`, and `repeated: "
          "drop` where a list has a goal twice. Splits that share a goal are refused."),
    choice("expert_query", "What the expert searches for: the instruction where that finds the "
           "product, or always the product's title.", ("instruction", "title"), "instruction"),
    choice("expert_thoughts", "Thoughts of the expert: a plain sentence for each action; for "
           "options alone, with their names (`color: gray`, as in instructions); or none.",
           THOUGHTS, "plain"),
    choice("expert_case", "Letters of the expert's actions: lower case, as in published "
           "trajectories, or as the page shows them, which is easier to copy. Clicks heed no case.",
           CASES, "lower"),
    integer("page_size", "Results on a page; ten as released. Fewer make observations shorter.",
            PAGE_SIZE, minimum=1, maximum=MOST_RESULTS),
    boolean("repeat_instruction", "Show the instruction on every page, as released, or on the "
            "first page alone.", True),
)  # fmt: skip


def _lease(options: OptionView) -> LeaseDraft:
    shop_options = _shop_options(options)
    query, thoughts = options.text("expert_query"), options.text("expert_thoughts")
    shop, splits = _resolved(options, shop_options)
    program = ["-m", "agentc_backends.webshop.job_serve", "--port", "0"]
    program += ["--ready-file", "{ready_file}"]
    for flag, path in _files(shop_options).items():
        if path is not None:
            program += [f"--{flag}", path]
    digest = "" if shop is None else shop.digest
    program += ["--catalogue-sha256", digest, "--products", str(shop_options.products or 0)]
    program += ["--price-seed", str(shop_options.price_seed)]
    program += ["--shuffle-seed", str(shop_options.shuffle_seed)]
    if shop_options.catalogue is None:
        program += ["--invented-seed", str(shop_options.invented_seed)]
    if shop_options.human_goals:
        program.append("--human-goals")
    program += ["--splits", json.dumps(splits, separators=(",", ":"))]
    program += ["--expert-query", query, "--expert-thoughts", thoughts]
    case, page_size = options.text("expert_case"), options.integer("page_size")
    if case != "lower":
        program += ["--expert-case", case]
    if page_size != PAGE_SIZE:
        program += ["--page-size", str(page_size)]
    if not options.flag("repeat_instruction"):
        program.append("--instruction-once")
    # Keys follow what files hold, not where they lie.
    identity = {k: v for k, v in options.identity().items() if k not in _files(shop_options)}
    identity |= {"splits": dict(splits), "catalogue_sha256": digest}
    return LeaseDraft(
        role="environment",
        backend=BACKEND.id,
        version=BACKEND.version,
        software=LIGHT,
        program=tuple(program),
        identity=identity,
        port="chosen",
        probe="/health",
        identity_check="environment",
        inside=True,
        expect={
            "name": "webshop",
            "catalogue_sha256": digest,
            "goals_sha256": "" if shop is None else shop.goals_digest,
        },
        # Reading and indexing take a millisecond for each product, more where others work too.
        ready_timeout_s=120.0 if shop is None else max(120.0, len(shop.products) / 250),
    )


def _shop_options(options: OptionView) -> ShopOptions:
    # Here, so that specs without a shop do not wait for it.
    from agentc_backends.webshop.shop import ShopOptions

    catalogue = options.get("catalogue")
    products = options.get("products")
    assert isinstance(products, (int, type(None)))
    human = options.flag("human_goals")
    files: dict[str, str | None] = {"attributes": None, "instructions": None}
    if catalogue is None:
        for name in files:
            options.leave(name, "an invented catalogue (no `catalogue`) has its own")
        if human:
            options.refuse(
                "human_goals",
                "people wrote no goals for an invented catalogue",
                fix="give `catalogue`, `attributes` and `instructions`, or leave human_goals out",
            )
        if products is None:
            options.refuse(
                "products",
                "an invented catalogue needs a number of products",
                fix="write `products: 1000`, or give `catalogue`",
            )
    else:
        options.leave("invented_seed", "`catalogue` names products that are not invented")
        files["attributes"] = _text(options.get("attributes"))
        if human:
            files["instructions"] = _text(options.get("instructions"))
        else:
            options.leave("instructions", "only `human_goals: true` reads them")
        needed = "instructions" if human else "attributes"
        if files[needed] is None:
            options.refuse(
                "catalogue", f"goals are made from `{needed}`", fix=f"give `{needed}: <file>`"
            )
    return ShopOptions(
        catalogue=_text(catalogue),
        products=products,
        invented_seed=options.integer("invented_seed") if catalogue is None else 0,
        human_goals=human,
        price_seed=options.integer("price_seed"),
        shuffle_seed=options.integer("shuffle_seed"),
        **files,
    )


def _resolved(options: OptionView, shop_options: ShopOptions) -> tuple[Shop | None, dict[str, str]]:
    from agentc_backends.webshop.products import CatalogueError
    from agentc_backends.webshop.shop import open_shop

    written = options.get("splits")
    assert isinstance(written, dict)
    if options.refusals:
        return None, {}
    try:
        shop = open_shop(shop_options, options.file)
    except CatalogueError as error:
        options.refuse("catalogue", str(error))
        return None, {}
    try:
        return shop, read_splits(written, shop, options.file)
    except SplitError as error:
        options.refuse("splits", str(error))
        return shop, {}


def _files(shop_options: ShopOptions) -> dict[str, str | None]:
    return {
        "catalogue": shop_options.catalogue,
        "attributes": shop_options.attributes,
        "instructions": shop_options.instructions,
    }


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    """The declaration under a spec's settings, which may still be wrong in any way."""
    splits = given.get("splits")
    return replace(BACKEND, splits=tuple(splits) if isinstance(splits, dict) else OWN)


def _expected_tasks(given: Mapping[str, Json]) -> Mapping[str, tuple[float, float]]:
    splits = given.get("splits")
    assert isinstance(splits, dict)
    return {name: (float(size(str(line))), 1.0) for name, line in splits.items()}


BACKEND = EnvironmentBackend(
    id="env.webshop",
    version=3,
    doc="WebShop: find and buy a product that an instruction describes, as text, over an invented "
    "catalogue or the released one. Search ranks as Lucene does, without Java.",
    software=LIGHT,
    lease=_lease,
    fields=FIELDS,
    splits=OWN,
    reward_range=(0.0, 1.0),
    success_at=1.0,
    max_turns=100,
    expected_tasks=_expected_tasks,
    configured=_configured,
    capabilities=frozenset({"expert", "fork", "snapshot"}),
    data_sets=(PRODUCTS_1000,),
)
