"""An environment's entry, from settings typed by hand or from a spec, checked as a spec's is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentc.backend_api import BackendTable, EnvironmentBackend, LeaseDraft, Software
from agentc.diagnostics import Diagnostic, Sink
from agentc.diagnostics.diagnostic import Source
from agentc.front.read_module import build_module
from agentc.ir.module import Module, Resource
from agentc.lock.references import OutsideReferences
from agentc.passes import PassContext
from agentc.passes.lowering.module_context import ModuleContext
from agentc.passes.lowering.reports import report_resources
from agentc.passes.lowering.software import read_locks
from agentc.source.load import load_text

TYPED = "(as typed)"
"""What messages call the place of settings that are in no file."""
_NAME = "environment"
_FIRST = 8
"""Line of the first setting in the text that typed ones are read from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentEntry:
    """A checked entry: its declaration under its settings, the lease of its server, the software
    that it runs in, where relative paths start, and by role the endpoints that its server calls."""

    backend: EnvironmentBackend
    lease: LeaseDraft
    software: Software
    directory: Path
    asked: Mapping[str, LeaseDraft] = field(default_factory=dict)


def typed_entry(
    backend: str,
    settings: Sequence[tuple[str, str]],
    table: BackendTable,
    sink: Sink,
    *,
    directory: Path,
    allowed: Sequence[Path] = (),
) -> EnvironmentEntry | None:
    """The entry of a backend (`textcraft`, `env.textcraft`) with settings whose values are YAML;
    None where the sink has errors."""
    lines = [f"{_plain(name)}: {value}" for name, value in settings]
    text = "\n".join(
        [
            "agentc: 1",
            "name: typed",
            "stages:",
            f"  play: {{kind: expert, environment: {_NAME}, split: any}}",
            # Last, so that no message about a broken value points at what nobody typed.
            "environments:",
            f"  {_NAME}:",
            f"    backend: {_plain(backend)}",
            *(f"    {line}" for line in lines),
            "",
        ]
    )
    source = Source(TYPED, text)
    root = load_text(source, sink)
    _, module = build_module(source, root, {}, table, sink, directory=directory)
    if module is None or sink.has_errors:
        return None
    context = PassContext(table=table, sink=sink, directory=directory, allowed=tuple(allowed))
    return module_entry(module, _NAME, context)


def as_typed(
    found: Sequence[Diagnostic], settings: Sequence[tuple[str, str]]
) -> tuple[Diagnostic, ...]:
    """What was found, each about a word of the command line in place of a line of a file that
    nobody sees."""

    def typed(one: Diagnostic) -> Diagnostic:
        if one.span is None or one.span.source.name != TYPED:
            return one
        number = one.span.line - _FIRST
        about = f"`{'='.join(settings[number])}`: " if 0 <= number < len(settings) else ""
        return replace(one, span=None, message=f"{about}{one.message}")

    return tuple(map(typed, found))


def _plain(word: str) -> str:
    """As people write it where that can be, for messages show it."""
    return word if re.fullmatch(r"[A-Za-z_][\w.]*", word) else json.dumps(word)


def module_entry(module: Module, name: str, context: PassContext) -> EnvironmentEntry | None:
    """The entry of that name in a module without errors; None where the sink has errors."""
    lowering = ModuleContext(
        module,
        context.table,
        context.boundary,
        OutsideReferences(pins=dict(context.references.pins)),
    )
    report_resources(module, lowering, context)
    attempt = lowering.resource("environment", name)
    if attempt is not None and attempt.outside is not None:
        context.sink.error(
            "AGC123",
            f"`{name}` names a place outside of this folder: {attempt.outside.place}",
            fix=f"if it may be read: `--allow-path {Path(attempt.outside.place).parent}`",
        )
    asked = {}
    if attempt is not None and attempt.lease is not None:
        asked = dict(_endpoints(module.environments[name], attempt.lease, lowering, context.sink))
    own = read_locks(module, context)
    if context.sink.has_errors or attempt is None or attempt.lease is None:
        return None
    assert isinstance(attempt.backend, EnvironmentBackend)
    software = attempt.lease.software or attempt.backend.software
    return EnvironmentEntry(
        backend=attempt.backend,
        lease=attempt.lease,
        software=own.get(software.name, software),
        directory=context.directory,
        asked=asked,
    )


def _endpoints(
    entry: Resource, lease: LeaseDraft, lowering: ModuleContext, sink: Sink
) -> Iterator[tuple[str, LeaseDraft]]:
    """The model servers that an environment's server asks, by role: somebody else's alone, for
    what jobs start has its model from an experiment."""
    for role in lease.needs:
        server = entry.simulator_server(role)
        attempt = None if server is None else lowering.resource("server", server)
        if attempt is None or attempt.lease is None:
            if server is None and not sink.has_errors:
                sink.error(
                    "AGC603",
                    f"its server calls a model server as `{role}`, and settings that are typed "
                    "name none",
                    fix="write the entry and its server into a spec, and name both here: --spec",
                )
            continue
        if attempt.lease.port == "none":
            yield role, replace(attempt.lease, role=role)
            continue
        sink.error(
            "AGC603",
            f"its server calls `{server}` as `{role}`, and no experiment is here to start that one "
            "with its model",
            entry.spans.get(role),
            fix=f"start the model yourself, and make `{server}` that endpoint: `backend: openai, "
            "url: ..., model: ...`",
        )
