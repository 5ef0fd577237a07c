"""Declares `env.webshop`: WebShop behind the AgentGym protocol, served by `job_serve.py`.

Catalogue and splits are resolved here, so that lists which share a goal are a compile error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from agentc.backend_api import DataSet, DataSource, EnvironmentBackend, LeaseDraft, OptionView
from agentc.kinds.field import Json
from agentc.kinds.settings import fields_of
from agentc_backends.environments.declaration import effective, environment_lease
from agentc_backends.environments.published_data import (
    AGENT_R_LISTS,
    ETO_TRAJECTORIES,
    ETO_WEBSHOP_LISTS,
    WEBSHOP_FULL,
    fetch_advice,
)
from agentc_backends.environments.server.splits import SplitError
from agentc_backends.environments.webshop.settings import (
    FILES,
    OWN,
    WebShopSettings,
    read_splits,
    size,
)
from agentc_backends.software import LIGHT

if TYPE_CHECKING:
    from agentc_backends.environments.webshop.shop import Shop


# The catalogue's hash is of its canonical form (`job_canonical.py`), made from the products that a
# published Lucene index stored; the file that the authors offer has more in it that no shop reads.

_DRIVE = "https://drive.google.com/uc?export=download&id="

PRODUCTS_1000 = DataSet(
    name="webshop-1000",
    doc="WebShop's 1000 products with their attributes: 6,910 goals, in the released order.",
    licence="the code is MIT; the texts are sellers', scraped from a shop",
    sources=(
        DataSource(
            name="items_shuffle_1000.json",
            url=f"{_DRIVE}1EgHdxQ_YxqIQlvvq5iKlCrkEKR6-j0Ib",
            size=8_000_000,
        ),
        DataSource(
            name="items_ins_v2_1000.json",
            url=f"{_DRIVE}1IduG0xl544V_A_jv3tHXC0kyFi7PnyBu",
            size=147_099,
        ),
    ),
    unpacked_size=10_000_000,
    program=("-m", "agentc_backends.environments.webshop.job_canonical"),
    contents={
        "products.json": "804464316dc6eb43fffbcde76045a2d38d27678d9e0a96192db08da71f52ca58",
        "attributes.json": "93c56de0028d9b1747a23d3189c83a887edf9cebd23a163f3e45d13590abb190",
    },
    use="`catalogue: {path}/products.json.gz` and `attributes: {path}/attributes.json.gz` under an "
    "environment with `backend: webshop`",
)
DATA_SETS = (PRODUCTS_1000, WEBSHOP_FULL, ETO_WEBSHOP_LISTS, ETO_TRAJECTORIES, AGENT_R_LISTS)


def _lease(options: OptionView) -> LeaseDraft:
    settings = effective(options, WebShopSettings)
    _check(options, settings)
    shop, splits = _resolved(options, settings)
    digest = "" if shop is None else shop.digest
    # Keys follow what files hold, not where they lie.
    identity = {k: v for k, v in options.identity().items() if k not in FILES}
    identity |= {"splits": dict(splits), "catalogue_sha256": digest}
    return environment_lease(
        BACKEND,
        options,
        replace(settings, splits=splits, catalogue_sha256=digest),
        identity=identity,
        expect={
            "catalogue_sha256": digest,
            "goals_sha256": "" if shop is None else shop.goals_digest,
        },
        inside=True,
        # Reading and indexing take a millisecond for each product, more where others work too.
        ready_timeout_s=120.0 if shop is None else max(120.0, len(shop.products) / 250),
    )


def _check(options: OptionView, settings: WebShopSettings) -> None:
    if settings.catalogue is None:
        if settings.human_goals:
            options.refuse(
                "human_goals",
                "people wrote no goals for an invented catalogue",
                fix="give `catalogue`, `attributes` and `instructions`, or leave human_goals out",
            )
        if settings.products is None:
            options.refuse(
                "products",
                "an invented catalogue needs a number of products",
                fix="write `products: 1000`, or give `catalogue`",
            )
        return
    needed = "instructions" if settings.human_goals else "attributes"
    if getattr(settings, needed) is None:
        options.refuse(
            "catalogue", f"goals are made from `{needed}`", fix=f"give `{needed}: <file>`"
        )


def _resolved(options: OptionView, settings: WebShopSettings) -> tuple[Shop | None, dict[str, str]]:
    # Here, so that specs without a shop do not wait for it.
    from agentc_backends.environments.webshop.catalogue import CatalogueError
    from agentc_backends.environments.webshop.shop import open_shop

    if options.refusals:
        return None, {}
    try:
        shop = open_shop(settings.shop, options.file)
    except CatalogueError as error:
        options.refuse(
            "catalogue",
            str(error),
            fix=fetch_advice(DATA_SETS, options.unreadable)
            or "`agentc data fetch webshop-1000` gets 1000 products, `webshop-full` all of them",
        )
        return None, {}
    try:
        return shop, read_splits(settings.splits, shop, options.file)
    except SplitError as error:
        options.refuse("splits", str(error), fix=fetch_advice(DATA_SETS, options.unreadable))
        return shop, {}


def _configured(given: Mapping[str, Json]) -> EnvironmentBackend:
    """The declaration under a spec's settings, which may still be wrong in any way."""
    splits = given.get("splits")
    return replace(BACKEND, splits=tuple(splits) if isinstance(splits, dict) else OWN)


def _expected_tasks(given: Mapping[str, Json]) -> Mapping[str, tuple[float, float]]:
    """By the numbers of a split's goals; what an older result tells of its shop has none."""
    splits = given.get("splits")
    if not isinstance(splits, dict):
        return {}
    return {name: (float(size(str(line))), 1.0) for name, line in splits.items()}


BACKEND = EnvironmentBackend(
    id="env.webshop",
    version=3,
    doc="WebShop: find and buy a product that an instruction describes, as text, over an invented "
    "catalogue or the released one. Search ranks as Lucene does, without Java.",
    software=LIGHT,
    lease=_lease,
    fields=fields_of(WebShopSettings),
    splits=OWN,
    reward_range=(0.0, 1.0),
    success_at=1.0,
    max_turns=100,
    expected_tasks=_expected_tasks,
    configured=_configured,
    capabilities=frozenset({"expert", "fork", "snapshot"}),
    data_sets=DATA_SETS,
)
