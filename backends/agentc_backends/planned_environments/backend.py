"""Declares `env.webshop`, `env.sciworld` and `env.alfworld`: what specs may say about them, and
the facts that contracts are checked against. Their servers come with later releases.

Splits with their sizes, reward ranges and step limits are those of the ETO code (Song et al.,
ACL 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentc.backend_api import EnvironmentBackend, LeaseDraft, OptionView
from agentc.kinds.field import Field, Json, boolean, choice, strings
from agentc_backends.software import LIGHT

_VERSION = 1


def _lease_of(name: str, fields: tuple[Field, ...]) -> Callable[[OptionView], LeaseDraft]:
    def lease(options: OptionView) -> LeaseDraft:
        values = {field.name: options.get(field.name) for field in fields}
        return LeaseDraft(
            role="environment",
            backend=f"env.{name}",
            version=_VERSION,
            software=LIGHT,
            program=("-m", "agentc_backends.planned_environments.job_unavailable", f"env.{name}"),
            identity=options.identity(),
            identity_check="environment",
            expect={"name": name, "identity": {"options": values}},
        )

    return lease


def _fixed(
    sizes: Mapping[str, int],
) -> Callable[[Mapping[str, Json]], dict[str, tuple[float, float]]]:
    """Splits that no setting changes."""

    def expected(given: Mapping[str, Json]) -> dict[str, tuple[float, float]]:
        return {split: (float(count), 1.0) for split, count in sizes.items()}

    return expected


_WEBSHOP_FIELDS: tuple[Field, ...] = (
    choice("products", "Catalogue: all 1.18 million products, or the small one of 1000.",
           ("all", "small"), "all"),
    boolean("human_goals", "Goals written by people instead of generated ones.", True),
)  # fmt: skip

_SCIWORLD_FIELDS: tuple[Field, ...] = (
    strings("simplifications", "ScienceWorld's simplifications; `easy` is a set of them.",
            ("easy",)),
    choice("step_limit", "`per_task`: 10 to 100 steps by type of task; `uniform`: 100 for all.",
           ("per_task", "uniform"), "per_task"),
)  # fmt: skip

_ALFWORLD_FIELDS: tuple[Field, ...] = (
    boolean("shorten_arrivals", "Leave the sentence about arriving somewhere out of observations.",
            True),
)  # fmt: skip

WEBSHOP = EnvironmentBackend(
    id="env.webshop",
    version=_VERSION,
    doc="WebShop: find and buy a product that an instruction describes. Declared only.",
    software=LIGHT,
    lease=_lease_of("webshop", _WEBSHOP_FIELDS),
    fields=_WEBSHOP_FIELDS,
    splits=("train", "test"),
    reward_range=(0.0, 1.0),
    success_at=1.0,
    max_turns=10,
    expected_tasks=_fixed({"train": 1824, "test": 200}),
    available=False,
)

SCIWORLD = EnvironmentBackend(
    id="env.sciworld",
    version=_VERSION,
    doc="ScienceWorld: elementary science in a text world. A fatal mistake scores -1. "
    "Declared only.",
    software=LIGHT,
    lease=_lease_of("sciworld", _SCIWORLD_FIELDS),
    fields=_SCIWORLD_FIELDS,
    splits=("train", "dev", "test"),
    reward_range=(-1.0, 1.0),
    success_at=1.0,
    max_turns=100,
    expected_tasks=_fixed({"train": 1483, "dev": 194, "test": 211}),
    available=False,
)

ALFWORLD = EnvironmentBackend(
    id="env.alfworld",
    version=_VERSION,
    doc="ALFWorld: household tasks in a text world; `dev` are seen rooms, `test` unseen ones. "
    "Declared only.",
    software=LIGHT,
    lease=_lease_of("alfworld", _ALFWORLD_FIELDS),
    fields=_ALFWORLD_FIELDS,
    splits=("train", "dev", "test"),
    reward_range=(0.0, 1.0),
    success_at=1.0,
    max_turns=40,
    expected_tasks=_fixed({"train": 3321, "dev": 140, "test": 134}),
    available=False,
)
