"""A setting's value in effect is one for lowering, for the rules between settings and for cost,
which hold what a spec gives in three forms."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from agentc.backend_api import OptionView
from agentc.backend_api.view import SettingTable
from agentc.cost.subject import subject_of_job
from agentc.diagnostics.diagnostic import Origin, Source, Span
from agentc.ir.module import Body, Stage, Value
from agentc.kinds import kind_named
from agentc.kinds.field import Json
from agentc.passes.checks.subject import Settings

SPAN = Span(Source("spec.yaml", "agentc: 1\n"), 1, 1, 1, 7)


@pytest.mark.parametrize(
    ("name", "given", "path", "value"),
    [
        ("sft", {}, "lora.rank", None),
        ("sft", {"lora": None}, "lora.rank", None),
        ("sft", {"lora": {"alpha": 3.0}}, "lora.rank", 8),
        ("sft", {"lora": {"rank": 4}}, "lora.rank", 4),
        ("sft", {}, "lr", None),
        ("rollout", {}, "decode.max_tokens", 512),
        ("rollout", {"decode": {"max_tokens": 7}}, "decode.max_tokens", 7),
        ("pair", {}, "max_extra_rounds", 5),
        ("pair", {"max_extra_rounds": None}, "max_extra_rounds", None),
    ],
)
def test_three_readers_agree(name: str, given: Mapping[str, Json], path: str, value: Json) -> None:
    kind = kind_named(name)
    assert kind is not None
    view = OptionView(table=kind.fields, values=given)
    assert view.get(path) == value
    stage = Stage(
        id="stage",
        body=Body(
            kind=name,
            backend="any",
            fields={field: Value(each, SPAN) for field, each in given.items()},
        ),
        inputs={},
        origin=Origin(SPAN),
    )
    assert Settings(stage, SettingTable(kind.fields)).get(path) == value
    for field in kind.fields:
        view.get(field.name)
    identity = {"settings": view.identity(), "facts": {}}
    job = {"id": "stage", "kind": name, "key": "0" * 32, "backend": "any", "identity": identity}
    assert subject_of_job(job, "a100").setting(path) == value
