"""No seed that a spec may set is one that a library or server refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentc.backend_api import load_backends
from agentc.kinds import KINDS, Field
from agentc.kinds.field import SEED_LIMIT

NUMPY_LIMIT = 2**32 - 1


def fields() -> Iterator[tuple[str, Field]]:
    """Every key that a kind or an installed backend accepts, groups unfolded."""
    tables = [(kind.name, kind.fields) for kind in KINDS]
    for backend in load_backends():
        tables += [
            (backend.id, getattr(backend, part, ())) for part in ("options", "settings", "fields")
        ]
    for owner, table in tables:
        waiting = list(table)
        while waiting:
            field = waiting.pop()
            waiting += field.fields
            yield f"{owner}.{field.name}", field


SEEDS = {name: field for name, field in fields() if field.name.rsplit("_", 1)[-1] == "seed"}


def test_kinds_and_backends_have_seeds() -> None:
    assert {"sft.seed", "model.seed", "search.tie_seed", "rollout.prompt_seed"} <= SEEDS.keys()
    assert {"env.webshop.shuffle_seed", "serve.vllm.seed"} <= SEEDS.keys()


@pytest.mark.parametrize("name", sorted(SEEDS))
def test_a_seed_fits_every_library(name: str) -> None:
    schema = SEEDS[name].schema
    assert (schema.get("minimum"), schema.get("maximum")) == (0, SEED_LIMIT)
    # Prompt seeds are counted up from theirs, one for each attempt.
    assert SEED_LIMIT + 2**30 < NUMPY_LIMIT
