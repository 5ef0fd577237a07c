"""`agentc dev schema --draft-07`: valid, whole in itself, and of one mind with the schema that
editors read. Ajv, which SchemaStore uses, comes from npm, once, into .agentc/."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator

from agentc.backend_api import BackendTable, load_backends
from agentc.cli import main
from agentc.diagnostics import Sink
from agentc.published.json_schema import language_schema
from agentc.published.older_dialect import CATALOGUE_ID, FILE_MATCH, in_draft_07
from agentc.schema.coerce import as_json
from agentc.source.load import load_file

ROOT = Path(__file__).resolve().parents[2]
SPECS = sorted((ROOT / "specs").rglob("*.yaml"))
CASES = sorted((ROOT / "tests/diagnostics/cases").glob("*.yaml"))
EXAMPLES = sorted((ROOT / "compiler/agentc/diagnostics/examples").glob("AGC*/*.yaml"))
AJV = "8.20.0"
_SCRIPT = """
const Ajv = require("ajv");
const [schema, instances] = process.argv.slice(2).map((name) => require(name));
const ajv = new Ajv({strict: true, strictRequired: false, strictTypes: false});
const check = ajv.compile(schema);
console.log(JSON.stringify(instances.map((each) => check(each))));
"""


def instances(paths: list[Path]) -> Iterator[tuple[Path, Any]]:
    """Those that can be read as YAML."""
    for path in paths:
        _, root = load_file(path, Sink())
        if root is not None:
            yield path, as_json(root)


def places(schema: Any, inside: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each schema in it, with the keyword that it stands under."""
    if isinstance(schema, list):
        for item in schema:
            yield from places(item, inside)
    elif isinstance(schema, dict):
        if inside not in ("properties", "definitions"):
            yield inside, schema
        for key, value in schema.items():
            if key not in ("const", "default", "enum") or inside in ("properties", "definitions"):
                outside = inside in ("properties", "definitions")
                yield from places(value, "" if outside else key)


@pytest.fixture(scope="module")
def installed() -> Any:
    return in_draft_07(language_schema(load_backends()))


def test_it_is_a_schema_of_draft_07_that_needs_no_other(installed: Any) -> None:
    assert installed["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert installed["$id"] == CATALOGUE_ID
    known = {f"#/definitions/{name}" for name in installed["definitions"]}
    words = set(Draft7Validator.META_SCHEMA["properties"])
    for _, schema in places(installed):
        assert set(schema) <= words, set(schema) - words
        assert "$ref" not in schema or (schema["$ref"] in known and len(schema) == 1)
    assert "$defs" not in json.dumps(installed)


def test_the_command_prints_it(installed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", "schema", "--draft-07"]) == 0
    assert json.loads(capsys.readouterr().out) == installed


def test_the_page_has_the_entry_for_the_catalogue() -> None:
    page = (ROOT / "docs" / "editors.md").read_text(encoding="utf-8")
    [entry] = [
        json.loads(block)
        for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)
        if "fileMatch" in block
    ]
    assert (entry["url"], entry["fileMatch"]) == (CATALOGUE_ID, [*FILE_MATCH])


def test_both_forms_say_the_same_of_wrong_specs(small_table: BackendTable) -> None:
    schema = language_schema(small_table)
    newer, older = Draft202012Validator(schema), Draft7Validator(in_draft_07(schema))
    answers = [(newer.is_valid(each), older.is_valid(each)) for _, each in instances(CASES)]
    assert all(one == other for one, other in answers)
    assert (True, True) in answers
    assert (False, False) in answers


def test_it_takes_the_quickstart(installed: Any) -> None:
    [(_, quickstart)] = instances([ROOT / "specs" / "quickstart.yaml"])
    older = Draft7Validator(installed)
    assert older.is_valid(quickstart)
    assert not older.is_valid({**quickstart, "stags": {}})


@pytest.mark.long
def test_ajv_compiles_it_in_strict_mode_and_agrees(installed: Any, tmp_path: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("node and npm are not installed")
    cache = ROOT / ".agentc" / f"ajv-{AJV}"
    if not (cache / "node_modules" / "ajv").is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        words = [npm, "install", "--silent", "--prefix", str(cache), f"ajv@{AJV}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot fetch ajv {AJV}: {done.stderr[-300:]}")
    files = list(instances([*SPECS, *EXAMPLES]))
    (cache / "check.js").write_text(_SCRIPT)
    names = []
    for name, value in (("schema", installed), ("instances", [each for _, each in files])):
        names.append(str(tmp_path / f"{name}.json"))
        Path(names[-1]).write_text(json.dumps(value))
    words = [node, str(cache / "check.js"), *names]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = dict(zip((path for path, _ in files), json.loads(done.stdout), strict=True))
    assert [str(path) for path in SPECS if not answers[path]] == []
    newer = Draft202012Validator(language_schema(load_backends()))
    differ = [str(path) for path, each in files if newer.is_valid(each) != answers[path]]
    assert differ == []
    assert sum(not answers[path] for path in EXAMPLES if path in answers) > 20
