"""The published schema: valid, accepts what is shipped, rejects what structuring rejects."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agentc.backend_api import BackendTable, load_backends
from agentc.diagnostics import Sink
from agentc.kinds import KINDS
from agentc.kinds.field import Json
from agentc.published.json_schema import fields_schema, kind_schema, language_schema
from agentc.schema.coerce import as_json
from agentc.source.load import load_bytes, load_file

CASES = sorted((Path(__file__).parent.parent / "diagnostics" / "cases").glob("*.yaml"))
BEYOND = {
    # Wrong by rules that a JSON Schema does not state; the test holds it to that.
    "expression_of_wrong_type": "an expression's type is known when it is evaluated",
    "examples_out_of_turn": "whose turn it is depends on the position",
    "per_round_value_wrong": "values for rounds are typed when they are taken",
    "carry_list_empty_in_round_one": "what a carried name represents is known when it is bound",
}


# A schema is held to its dialect in three seconds, and made in one tenth.
@pytest.fixture(scope="module")
def published(small_table: BackendTable) -> Draft202012Validator:
    """The schema of the small table."""
    return Draft202012Validator(language_schema(small_table))


@pytest.fixture(scope="module")
def installed() -> Any:
    """The schema of all installed backends."""
    return language_schema(load_backends())


def read(path: Path) -> Json:
    _, node = load_file(path, Sink())
    assert node is not None
    return as_json(node)


def test_the_schema_is_valid_and_of_its_dialect(installed: Any) -> None:
    Draft202012Validator.check_schema(installed)
    assert installed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    text = json.dumps(installed)
    for name in re.findall(r'"#/\$defs/([a-z_]+)"', text):
        assert name in installed["$defs"]


def test_every_field_is_described(installed: Any) -> None:
    for kind in KINDS:
        properties = installed["$defs"][f"stage_{kind.name}"]["properties"]
        for field in kind.fields:
            assert field.doc in properties[field.name]["description"]
            assert properties[field.name]["x-identity"] == field.identity


def test_everything_that_an_editor_offers_is_explained(installed: Any) -> None:
    """A key or a word without documentation is offered as a bare name."""
    bare = []

    def walk(node: Json, path: str) -> None:
        if isinstance(node, list):
            for number, each in enumerate(node):
                walk(each, f"{path}/{number}")
        if not isinstance(node, dict):
            return
        if "enumDescriptions" in node:
            assert len(node["enumDescriptions"]) == len(node["enum"])  # type: ignore[arg-type]
        properties = node.get("properties")
        conditional = path.endswith("/if")
        for name, each in properties.items() if isinstance(properties, dict) else ():
            assert isinstance(each, dict)
            if (
                not conditional
                and name not in ("per_round", "agentc")
                and not each.get("description")
            ):
                bare.append(f"{path}/{name}")
        for key, each in node.items():
            walk(each, f"{path}/{key}")

    walk(installed, "")
    assert bare == []


def test_shipped_specs_are_accepted(repository: Path, installed: Any) -> None:
    check = Draft202012Validator(installed)
    specs = sorted((repository / "specs").rglob("*.yaml"))
    assert specs
    for spec in specs:
        assert [error.message for error in check.iter_errors(read(spec))] == [], spec


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if re.search(r"AGC20[1-59]|AGC206|AGC208|AGC210", c.read_text())],
    ids=lambda c: c.stem,
)
def test_malformed_specs_are_rejected(case: Path, published: Draft202012Validator) -> None:
    _, node = load_bytes(case.read_bytes(), case.name, Sink())
    assert node is not None
    assert published.is_valid(as_json(node)) == (case.stem in BEYOND)


def test_the_cases_become_valid_once_mended(published: Draft202012Validator) -> None:
    """The base that the cases are made of is right, so it is their fault that is rejected."""
    text = (CASES[0].parent / "typo_in_field.yaml").read_text().replace("globl", "global")
    _, node = load_bytes(text.encode(), "x", Sink())
    assert node is not None
    assert published.is_valid(as_json(node))


@pytest.mark.parametrize(
    ("value", "right"),
    [
        (0.1, True),
        ("{{ lr }}", True),
        ({"per_round": [0.1, 0.5]}, True),
        ({"per_round": []}, False),
        ("1_000", True),
        ("fast", False),
        (0, False),
        (None, False),
        ([0.1], False),
    ],
)
def test_shapes_of_a_setting(value: Json, right: bool, small_table: BackendTable) -> None:
    kind = next(kind for kind in KINDS if kind.name == "dpo")
    stage = {
        "kind": "dpo",
        "model": "sft",
        "data": ["pairs"],
        "lr": 1e-6,
        "global_batch": 8,
        "max_length": 64,
        "beta": value,
    }
    assert Draft202012Validator(kind_schema(kind, small_table)).is_valid(stage) == right


def test_options_depend_on_the_backend(small_table: BackendTable) -> None:
    kind = next(kind for kind in KINDS if kind.name == "dpo")
    check = Draft202012Validator(kind_schema(kind, small_table))
    stage: dict[str, Json] = {"kind": "dpo", "model": "a", "data": "b"}
    assert check.is_valid({**stage, "options": {"zero_stage": 1}})
    assert check.is_valid({**stage, "backend": "openrlhf", "options": {"zero_stage": 1}})
    assert not check.is_valid({**stage, "backend": "trl", "options": {"zero_stage": 1}})
    assert not check.is_valid({**stage, "options": {"zero": 1}})


def test_resources_depend_on_the_backend(published: Draft202012Validator) -> None:
    spec: dict[str, Json] = {"agentc": 1, "name": "x"}
    for entry, right in (
        ({"backend": "textcraft", "max_depth": 2}, True),
        ({"backend": "env.textcraft", "catalogue": "x"}, False),
        ({"backend": "webshop", "catalogue": "x"}, True),
        ({"backend": "webshop"}, False),
        ({"backend": "other"}, False),
        ({}, False),
    ):
        assert published.is_valid({**spec, "environments": {"e": entry}}) == right, entry


def test_a_backend_of_its_own() -> None:
    table = load_backends()
    for backend in table:
        own = getattr(backend, "options", None) or getattr(backend, "fields", ())
        schema = fields_schema(backend.id, own)
        Draft202012Validator.check_schema(schema)
        for field in own:
            if not field.required and not field.fields and field.default is not None:
                only = {field.name: field.default}
                errors = list(Draft202012Validator(schema).iter_errors(only))
                assert not [e for e in errors if e.path], (backend.id, field.name)
