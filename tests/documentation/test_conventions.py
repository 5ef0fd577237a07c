"""Files of a public repository: citation, security policy, workflow, templates, changelog.

The schema is the part of Citation File Format 1.2.0 that CITATION.cff uses.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import yaml

ROOT = Path(__file__).resolve().parents[2]
_TEXT = {"type": "string", "minLength": 1}
_CITATION = {
    "type": "object",
    "additionalProperties": False,
    "required": ["cff-version", "message", "title", "authors"],
    "properties": {
        "cff-version": {"const": "1.2.0"},
        "message": _TEXT,
        "title": _TEXT,
        "abstract": _TEXT,
        "type": {"enum": ["software", "dataset"]},
        "version": _TEXT,
        "license": _TEXT,
        "keywords": {"type": "array", "items": _TEXT, "minItems": 1, "uniqueItems": True},
        "authors": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name"],
                "properties": {"name": _TEXT},
            },
        },
    },
}


def _yaml(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text("utf-8"))


def test_the_citation_follows_its_format_and_names_this_version() -> None:
    citation = _yaml("CITATION.cff")
    jsonschema.validate(citation, _CITATION)
    module = (ROOT / "compiler/agentc/__init__.py").read_text("utf-8")
    version = re.search(r'__version__ = "([^"]+)"', module)
    assert version is not None
    assert citation["version"] == version[1]


def test_the_workflow_runs_what_contributors_run() -> None:
    workflow = _yaml(".github/workflows/ci.yml")
    steps = workflow["jobs"]["test"]["steps"]
    assert any(step.get("run", "").endswith(".ci/run") for step in steps)
    assert workflow["permissions"] == {"contents": "read"}
    assert (ROOT / ".ci/run").stat().st_mode & 0o100


def test_issue_templates_have_what_their_form_needs() -> None:
    forms = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
    for path in forms:
        form = yaml.safe_load(path.read_text("utf-8"))
        if path.name == "config.yml":
            assert set(form) == {"blank_issues_enabled", "contact_links"}
            continue
        assert {"name", "description", "body"} <= set(form), path.name
        for field in form["body"]:
            assert field["attributes"]["label"], path.name
            assert field["type"] in {"textarea", "input", "dropdown"}, path.name
    assert len(forms) == 3


def test_the_changelog_keeps_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert "## [Unreleased]" in text
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= kinds
    lines = re.findall(r"^- .*(?:\n  .*)*", text, re.MULTILINE)
    assert all(len(line.split()) <= 60 for line in lines)
