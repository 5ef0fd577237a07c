"""`agentc dev schema` as typed."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from agentc.backend_api import load_backends
from agentc.cli import main
from agentc.published.json_schema import language_schema


def test_it_prints_the_schema_of_specs(capsys: pytest.CaptureFixture[str]) -> None:
    """That it is one, and describes everything, is held in `test_json_schema.py`."""
    assert main(["dev", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["title"] == "agentc spec"
    assert schema == language_schema(load_backends())


@pytest.mark.parametrize(
    ("words", "title"),
    [
        (["dev", "schema", "--kind", "dpo"], "agentc stage of kind dpo"),
        (["dev", "schema", "--backend", "env.textcraft"], "settings of env.textcraft"),
    ],
)
def test_it_prints_a_schema(
    words: list[str], title: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    assert schema["title"] == title


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["dev", "schema", "--kind", "dpoo"], "did you mean `dpo`?"),
        (["dev", "schema", "--backend", "env.textcarft"], "did you mean `env.textcraft`?"),
    ],
)
def test_what_does_not_exist_is_not_found(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 5
    captured = capsys.readouterr()
    assert captured.out == ""
    assert hint in captured.err
