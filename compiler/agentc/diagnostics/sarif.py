"""Renders diagnostics as SARIF 2.1.0 (OASIS), which code-scanning sites and editors read.

Section numbers are those of the standard.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from agentc import __version__
from agentc.diagnostics.codes.code import Code
from agentc.diagnostics.diagnostic import Diagnostic, Span, uses_of

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_Json = dict[str, object]


def render_sarif(
    checked: Sequence[tuple[str, Sequence[Diagnostic]]], code_named: Callable[[str], Code | None]
) -> str:
    """A SARIF log with one run, of the specs that were checked with what was found in each: what
    has no place in a file is reported at the spec, since sites drop results without a location.
    `code_named` looks codes up."""
    diagnostics = [found for _, several in checked for found in several]
    rules = sorted({found.code for found in diagnostics})
    run: _Json = {
        "tool": {
            "driver": {
                "name": "agentc",
                "version": __version__,
                "rules": [_rule(name, code_named(name), diagnostics) for name in rules],
            }
        },
        # Columns are those of Python texts (3.14.27).
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True}],
        "results": [
            _result(found, rules, about) for about, several in checked for found in several
        ],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(name: str, known: Code | None, diagnostics: Sequence[Diagnostic]) -> _Json:
    code = known or Code(name, name, name)
    more = f"`agentc explain {name}` shows an example and how it is fixed."
    level = next(found.severity for found in diagnostics if found.code == name)
    return {
        "id": name,
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.explanation},
        "help": {
            "text": f"{code.explanation} {more}",
            "markdown": f"**{name}: {code.title}**\n\n{code.explanation}\n\n{more}",
        },
        "defaultConfiguration": {"level": level},
    }


def _result(diagnostic: Diagnostic, rules: Sequence[str], about: str) -> _Json:
    span = diagnostic.span
    if span is None:
        place: _Json = {"artifactLocation": _artifact(about)}
    else:
        place = _physical(span)
    uses = () if span is None else uses_of(span)
    related: _Json = {
        "relatedLocations": [
            {
                "id": number,
                "message": {"text": "the template is used here"},
                "physicalLocation": _physical(at),
            }
            for number, at in enumerate(uses, 1)
        ]
    }
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": rules.index(diagnostic.code),
        "level": diagnostic.severity,
        "message": {"text": _message(diagnostic)},
        "locations": [{"physicalLocation": place}],
        **(related if uses else {}),
    }


def _message(diagnostic: Diagnostic) -> str:
    # 3.11.5 wants braces doubled, for placeholders; without `arguments` the readers that there
    # are show a text as it stands, and would show `{{{{ lr }}}}` where we mean `{{ lr }}`.
    lines = [diagnostic.message]
    if diagnostic.expected:
        lines.append(f"expected: {diagnostic.expected}")
    lines += [f"note: {note}" for note in diagnostic.notes]
    lines += [f"in: {step}" for step in diagnostic.steps]
    if diagnostic.fix:
        lines.append(f"help: {diagnostic.fix}")
    return "\n".join(lines)


def _physical(span: Span) -> _Json:
    region = {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,  # exclusive in both (3.30.8)
    }
    return {"artifactLocation": _artifact(span.source.name), "region": region}


def _artifact(name: str) -> _Json:
    """A path as a URI; one that was typed as relative stays so, below the root of the sources."""
    path = Path(name)
    if path.is_absolute():
        return {"uri": path.as_uri()}
    return {"uri": quote(os.fsencode(path.as_posix())), "uriBaseId": "%SRCROOT%"}
