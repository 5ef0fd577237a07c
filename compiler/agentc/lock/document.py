"""LockDocument and its file: YAML with comments, the same bytes for the same content.

Read with the reader of specs, so that a stranger's lock meets the same limits and every entry
keeps its place for messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agentc.diagnostics.diagnostic import Span
from agentc.diagnostics.sink import Sink
from agentc.kinds.field import Json
from agentc.lock.references import Revision
from agentc.source import scalars
from agentc.source import tree as nodes
from agentc.source.files import ReadLimits
from agentc.source.load import load_file

LOCK_VERSION = 2
_READ_VERSIONS = (1, LOCK_VERSION)
"""Version 1 had no `settings`."""
SECTIONS = {
    "params": "Values of the params that the keys below are for.",
    "models": "Commits of hub repositories, by `<repository>@<revision in the spec>`.",
    "files": "Files and folders that the spec names: SHA-256 over names and contents.",
    "templates": "Template files that the spec uses: SHA-256.",
    "software": "Software stacks: SHA-256 of the file with their pinned packages.",
    "backends": "Backends, with the version that enters keys.",
    "jobs": "What each job makes, as `<kind>/<key>` of the store.",
    "settings": "What enters the key of each job, as JSON: a change of it can be named.",
}
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./@:-]*(?<!:)")
_NOT_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_LIMITS = ReadLimits(file_bytes=16 * 1024 * 1024, depth=8, nodes=400_000, aliases=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockDocument:
    """The sections of a lock (see SECTIONS), each from names to values.

    `keys` is the version of the content keys, `agentc` the release that wrote it; params and
    `scale` are those that the jobs are for. `places` tell
    where an entry stands, by (section, name), when it was read from a file.
    """

    spec: str
    agentc: str
    keys: int
    scale: str | None = None
    sections: Mapping[str, Mapping[str, Json]]
    places: Mapping[tuple[str, str], Span] = field(default_factory=dict)
    start: Span | None = None

    def section(self, name: str) -> Mapping[str, Json]:
        """A section; empty when the lock has none of that name."""
        return self.sections.get(name, {})

    def pins(self) -> dict[Revision, str]:
        """Commits by repository and revision."""
        found: dict[Revision, str] = {}
        for name, commit in self.section("models").items():
            repo, at, revision = name.rpartition("@")
            if at:
                found[repo, revision] = str(commit)
        return found


def lock_beside(spec: Path) -> Path:
    """Where the lock of a spec lies: `specs/eto.yaml` has `specs/eto.lock`."""
    return spec.with_suffix(".lock") if spec.name else spec / ".lock"


def render_lock(document: LockDocument) -> str:
    """The text of a lock file."""
    lines = [
        f"# Lock of {document.spec}, written by `agentc lock`; keep it beside the spec.",
        "# It names everything outside of the spec that results depend on. A command with --locked",
        "# refuses to work when anything of it has changed; without, it warns.",
        f"lock: {LOCK_VERSION}",
        f"spec: {_written(document.spec)}",
        f"agentc: {_written(document.agentc)}",
        f"keys: {document.keys}",
    ]
    if document.scale is not None:
        lines.append(f"scale: {_written(document.scale)}")
    for name, comment in SECTIONS.items():
        section = document.section(name)
        if section:
            lines += ["", f"# {comment}", f"{name}:"]
            lines += [f"  {_named(k)}: {_written(v)}" for k, v in section.items()]
    return "\n".join(lines) + "\n"


def read_lock(path: Path, sink: Sink) -> LockDocument | None:
    """A lock file, or None when it cannot be read (then the sink says why, AGC741 last)."""
    complaints = Sink()
    source, root = load_file(path, complaints, _LIMITS)
    document = None
    if root is not None and not complaints.has_errors:
        try:
            document = _document(root)
        except _NoLockError as error:
            complaints.error("AGC741", str(error), error.span)
    if document is None:
        first = complaints.sorted()[0]
        sink.error(
            "AGC741",
            f"the lock {source.name} cannot be used: {first.message}",
            first.span,
            fix=f"write it again: agentc lock {path.with_suffix('.yaml').name}",
        )
    return document


class _NoLockError(Exception):
    """The file is YAML and no lock."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.span = span


def _document(root: nodes.Node) -> LockDocument:
    if not isinstance(root, nodes.Mapping):
        raise _NoLockError("a lock is a mapping", root.span)
    head: dict[str, Json] = {}
    sections: dict[str, dict[str, Json]] = {}
    places: dict[tuple[str, str], Span] = {}
    for entry in root.entries:
        name, value = entry.key.text, entry.value
        if name in SECTIONS:
            sections[name] = {}
            for inner in _entries(value):
                sections[name][inner.key.text] = _value(inner.value)
                places[name, inner.key.text] = inner.key.span
        elif name in ("lock", "spec", "agentc", "keys", "scale"):
            head[name] = _value(value)
        else:
            raise _NoLockError(f"a lock has no `{name}`", entry.key.span)
    if head.get("lock") not in _READ_VERSIONS:
        raise _NoLockError(
            f"it is no lock of version {LOCK_VERSION}, which starts with `lock: {LOCK_VERSION}`",
            root.span,
        )
    keys, scale = head.get("keys"), head.get("scale")
    return LockDocument(
        spec=str(head.get("spec")),
        agentc=str(head.get("agentc")),
        keys=keys if isinstance(keys, int) else 0,
        scale=None if scale is None else str(scale),
        sections=sections,
        places=places,
        start=Span(root.span.source, 1, 1, 1, 2),
    )


def _entries(node: nodes.Node) -> Iterator[nodes.Entry]:
    if not isinstance(node, nodes.Mapping):
        raise _NoLockError("expected names with values", node.span)
    yield from node.entries


def _value(node: nodes.Node) -> Json:
    match node:
        case nodes.Scalar():
            return scalars.plain_value(node)
        case nodes.Sequence():
            return [_value(item) for item in node.items]
        case nodes.Mapping():
            return {entry.key.text: _value(entry.value) for entry in node.entries}
        case _:
            raise _NoLockError("expected a value", node.span)


def _named(name: str) -> str:
    """A name as a YAML key: bare where that is plainly text."""
    plain = _PLAIN.fullmatch(name) and name.lower() not in _NOT_TEXT
    return name if plain else _written(name)


def _written(value: Json) -> str:
    """A value as JSON, which is YAML; digests would be numbers if they were not quoted. A text
    with quotes of its own stands in single ones, so that it can be read."""
    if isinstance(value, str) and '"' in value and value.isascii() and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
