"""SARIF: every diagnostic becomes one result, at the same place, in the form of the standard.

AGENTC_SARIF_SCHEMA names a file with the standard's own schema, which is not ours to ship; with it
the logs are validated against that too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import jsonschema
import pytest

from agentc.backend_api import BackendTable
from agentc.cli import main
from agentc.diagnostics import Diagnostic, Sink
from agentc.diagnostics.diagnostic import Source, Span
from agentc.diagnostics.sarif import render_sarif
from agentc.front.read_module import build_module
from agentc.reference.codes import code_named
from agentc.source.load import load_bytes

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
MANY_LINES = Path(__file__).parent / "cases" / "not_a_mapping.yaml"
"""What is wrong there ends in another line than it begins in."""


def run_of(log: str) -> dict[str, Any]:
    """The only run of a log, after what the standard demands of its frame (3.13, 3.14, 3.19)."""
    document = json.loads(log)
    assert document["version"] == "2.1.0"
    assert len(document["runs"]) == 1
    run: dict[str, Any] = document["runs"][0]
    driver = run["tool"]["driver"]
    assert driver["name"] == "agentc"
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning")
        assert result["message"]["text"].strip()
        assert len(result["locations"]) == 1
    return run


def checked(case: Path, table: BackendTable) -> tuple[Diagnostic, ...]:
    sink = Sink()
    source, root = load_bytes(case.read_bytes(), case.name, sink)
    build_module(source, root, {}, table, sink)
    return sink.sorted()


@pytest.mark.parametrize("case", [*CASES[::13], MANY_LINES], ids=lambda case: case.stem)
def test_each_diagnostic_is_a_result_at_its_place(case: Path, small_table: BackendTable) -> None:
    found = checked(case, small_table)
    results = run_of(render_sarif([(case.name, found)], code_named))["results"]
    assert len(results) == len(found)
    for diagnostic, result in zip(found, results, strict=True):
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == case.name
        assert diagnostic.message in result["message"]["text"]
        span = diagnostic.span
        region = place.get("region")
        if span is None:
            assert region is None
        else:
            assert (region["startLine"], region["startColumn"]) == (span.line, span.column)
            assert (region["endLine"], region["endColumn"]) == (span.end_line, span.end_column)
            assert region["startLine"] >= 1
            assert region["endLine"] >= region["startLine"]


def test_rules_carry_the_words_of_the_table(small_table: BackendTable) -> None:
    found = [each for case in CASES for each in checked(case, small_table)]
    rules = run_of(render_sarif([("x.yaml", found)], code_named))["tool"]["driver"]["rules"]
    assert {rule["id"] for rule in rules} == {each.code for each in found}
    for rule in rules:
        code = code_named(rule["id"])
        assert code is not None
        assert rule["shortDescription"]["text"] == code.title
        assert rule["fullDescription"]["text"] == code.explanation


@pytest.mark.parametrize("name", ["a spec.yaml", "é/50%#?.yaml", "../up.yaml", "\udcff.yaml"])
def test_a_file_name_becomes_a_uri_and_back(name: str, tmp_path: Path) -> None:
    def location(path: str) -> dict[str, str]:
        span = Span(Source(path, "a: 1\n"), 1, 1, 1, 2)
        run = run_of(
            render_sarif([(path, [Diagnostic(code="AGC201", message="m", span=span)])], code_named)
        )
        found: dict[str, str] = run["results"][0]["locations"][0]["physicalLocation"][
            "artifactLocation"
        ]
        return found

    relative = location(name)
    assert (
        os.fsdecode(
            unquote(relative["uri"], errors="surrogateescape").encode(errors="surrogateescape")
        )
        == name
    )
    assert relative["uriBaseId"] == "%SRCROOT%"
    absolute = location(str(tmp_path / "x y.yaml"))
    assert unquote(urlparse(absolute["uri"]).path) == str(tmp_path / "x y.yaml")
    assert "uriBaseId" not in absolute


def test_the_uses_of_a_template_are_related_places() -> None:
    spec = Source("spec.yaml", "stages:\n  sft: {use: outer}\n")
    outer = Source("outer.yaml", "body: {use: inner}\n", used_at=Span(spec, 2, 9, 2, 12))
    inner = Source("inner.yaml", "body: {lr: fast}\n", used_at=Span(outer, 1, 8, 1, 11))
    found = Diagnostic(code="AGC203", message="m", span=Span(inner, 1, 12, 1, 16))
    result = run_of(render_sarif([("spec.yaml", [found])], code_named))["results"][0]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "inner.yaml"
    related = [
        (
            one["physicalLocation"]["artifactLocation"]["uri"],
            one["physicalLocation"]["region"]["startLine"],
        )
        for one in result["relatedLocations"]
    ]
    assert related == [("outer.yaml", 1), ("spec.yaml", 2)]


def test_nothing_wrong_is_a_log_without_results() -> None:
    run = run_of(render_sarif([("spec.yaml", [])], code_named))
    assert run["results"] == []
    assert run["invocations"] == [{"executionSuccessful": True}]


def test_every_command_refuses_a_bad_spec_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yaml").write_text("agentc: 1\nname: demo\nstags: {}\n")
    monkeypatch.chdir(tmp_path)

    def agentc(*words: str) -> tuple[str, str]:
        assert main(words) == 1
        return capsys.readouterr()

    said = {}
    for words in (["check"], ["plan"], ["run"], ["bundle", "--bare", "-o", "out"]):
        out, said[words[0]] = agentc(*words, "bad.yaml")
        assert out == ""
    assert len(set(said.values())) == 1
    shown = {}
    for form in ("json", "sarif"):
        shown[form], err = agentc("check", "bad.yaml", "--format", form)
        assert err == ""
        assert "AGC201" in shown[form]
    assert agentc("plan", "bad.yaml", "--format", "json")[0] == shown["json"]
    results = run_of(shown["sarif"])["results"]
    assert results[0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 3


@pytest.mark.skipif(
    "AGENTC_SARIF_SCHEMA" not in os.environ,
    reason="AGENTC_SARIF_SCHEMA does not name a file with the schema of SARIF 2.1.0",
)
def test_the_standards_own_schema_accepts_the_logs(small_table: BackendTable) -> None:
    schema = json.loads(Path(os.environ["AGENTC_SARIF_SCHEMA"]).read_text())
    check = jsonschema.validators.validator_for(schema)(schema)
    for case in CASES:
        log = json.loads(render_sarif([(case.name, checked(case, small_table))], code_named))
        assert [error.message for error in check.iter_errors(log)] == []
