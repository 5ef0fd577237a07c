"""A plan as text to be kept in the repository: everything that enters a key or reaches a job, one
thing a line, so that a difference says what changed.

Where a job stands in its spec (line, column, template) is left out, and so is the digest of the
spec's text: a comment may move both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

_LONG = 160


def canonical_plan(document: Mapping[str, Any]) -> str:
    """The text of a plan document (plan.json, decoded)."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"plan {document['plan']} {document['name']}"
    yield from _flat("params", document["params"])
    for name, entry in sorted(document["software"].items()):
        yield f"software {name} = {entry['lock']}"
    for job in document["jobs"]:
        yield ""
        yield f"job {job['id']} = {job['kind']}/{job['key']}"
        place = f"round {job['round']}" if job["round"] is not None else "no round"
        yield f"  {job['backend']} {job['version']}, {job['software']}, {place}"
        yield f"  stage {job['stage']} makes {job['produces']}"
        yield f"  program {_text(job['program'])}"
        for role, names in sorted(job["inputs"].items()):
            yield f"  input {role} = {', '.join(names)}"
        for part in ("identity", "config", "placement", "resources", "contract"):
            yield from (f"  {line}" for line in _flat(part, job[part]))
        yield f"  processes {job['processes']}, resume {job['resume']}"
        for lease in sorted(job["leases"], key=lambda lease: str(lease["role"])):
            rest = {name: value for name, value in lease.items() if name != "role"}
            yield from (f"  {line}" for line in _flat(f"{lease['role']} server", rest))
    yield ""
    for session in document["sessions"]:
        yield f"session {session['id']} = {session['key']}: {', '.join(session['members'])}"
    yield f"targets {', '.join(document['targets'])}"
    yield from _flat("experiment", document["experiment"])


def _flat(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, item in sorted(value.items()):
            yield from _flat(f"{path}.{name}", item)
    elif value not in ({}, [], None):
        yield f"{path} = {_text(value)}"


def _text(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(text) <= _LONG:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[:60]}... {len(text)} characters, sha256 {digest}"
