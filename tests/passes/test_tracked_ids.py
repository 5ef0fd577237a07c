"""Ids of a stage's inputs note every look at them, and no handing on."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.drafted import job_draft

from agentc.passes.lowering.trial import look_through, tracked

IDS = ("eto.1.explore", "sft")

LOOKS: dict[str, Callable[[Any], Any]] = {
    "iterated": list,
    "unpacked": lambda ids: (lambda one, other: [one, other])(*ids),
    "taken one": lambda ids: ids[0],
    "cut": lambda ids: ids[1:],
    "looked for": lambda ids: "sft" in ids,
    "placed": lambda ids: ids.index("sft"),
    "counted one": lambda ids: ids.count("sft"),
    "added": lambda ids: (*ids, "more"),
    "added to": lambda ids: ids + ("more",),  # noqa: RUF005
    "repeated": lambda ids: ids * 2,
    "compared": lambda ids: ids == IDS,
    "told apart": lambda ids: ids != IDS,
    "ordered": lambda ids: ids < ("z",),
    "sorted": sorted,
    "backwards": lambda ids: list(reversed(ids)),
    "hashed": hash,
    "joined": ", ".join,
    "shown": str,
    "formatted": lambda ids: f"{ids}",
    "as JSON": json.dumps,
    "as keys": dict.fromkeys,
    "copied": copy.deepcopy,
    "pickled": lambda ids: pickle.loads(pickle.dumps(ids)),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=list(LOOKS))
def test_a_look_is_noted_and_sees_what_is_there(look: Callable[[Any], Any]) -> None:
    inputs, attention = tracked({"rollouts": IDS})
    assert not attention.looked
    assert look(inputs["rollouts"]) == look(IDS)
    assert attention.looked


def test_handing_on_and_counting_are_no_look() -> None:
    inputs, attention = tracked({"rollouts": IDS, "expert": ()})
    again = {**inputs}
    assert len(again["rollouts"]) == 2
    assert again["rollouts"]
    assert not again["expert"]
    assert isinstance(again.get("rollouts", ()), tuple)
    assert not attention.looked


@pytest.mark.parametrize("part", ["config", "placement", "extra_identity", "contract", "program"])
def test_ids_handed_on_as_anything_but_inputs_are_found(part: str) -> None:
    inputs, attention = tracked({"rollouts": IDS})
    given: dict[str, Any] = {name: name for name in ("kind", "backend", "produces")}
    given |= {"version": 1, "program": (), "config": {}}
    look_through((job_draft(**given, inputs=inputs),))
    assert not attention.looked
    held: Any = (inputs["rollouts"],) if part == "program" else {"of": [inputs["rollouts"]]}
    look_through((job_draft(**{**given, part: held}, inputs=inputs),))
    assert attention.looked
