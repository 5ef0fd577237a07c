"""What `agentc explain SPEC` says of a spec: its paper, what it needs, where paper and code
disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from agentc.backend_api import BackendTable, EnvironmentBackend
from agentc.compilation import Compilation
from agentc.ir.module import Module
from agentc.kinds.field import Json
from agentc.text import counted, wrapped

_PARTS = (("paper", "paper"), ("code", "code"), ("chosen", "this spec"))


def overview(compiled: Compilation, table: BackendTable, width: int | None) -> Iterator[str]:
    """The lines about a spec that compiles."""
    module, plan = compiled.module, compiled.plan
    assert module is not None
    yield module.name if module.scale is None else f"{module.name}, scale {module.scale}"
    if module.description:
        yield from wrapped(module.description, width, "  ", "")
    for name, value in _facts(module.paper):
        yield from wrapped(f"{name}: {value}", width, "  ", "  ")
    yield ""
    yield "needs"
    for line in _needs(compiled, table):
        yield from wrapped(line, width, "  ", "  ")
    if plan is not None:
        stages = Counter(stage.kind for stage in module.stages.values())
        text = ", ".join(f"{kind} {count}" for kind, count in stages.items())
        line = f"{counted(len(plan.jobs), 'job')} of {counted(len(module.stages), 'stage')}: {text}"
        yield from wrapped(line, width, "  ", "  ")
    if compiled.spec.scales:
        yield from wrapped(f"scales: {', '.join(compiled.spec.scales)}", width, "  ", "  ")
    if compiled.spec.params:
        names = (f"{name}={_text(module.params.get(name))}" for name in compiled.spec.params)
        yield from wrapped(f"params: {', '.join(names)}", width, "  ", "  ")
    if module.discrepancies:
        yield ""
        count = counted(len(module.discrepancies), "discrepancy", "discrepancies")
        yield f"{count} of paper and code"
    for number, found in enumerate(module.discrepancies, 1):
        yield from wrapped(f"{number}. {_text(found.get('what'))}", width, "  ", "   ")
        for key, name in _PARTS:
            yield from wrapped(f"{name}: {_text(found.get(key))}", width, "     ", "  ")


def document(compiled: Compilation, table: BackendTable) -> dict[str, Json]:
    """The same as data."""
    module = compiled.module
    assert module is not None
    return {
        "name": module.name,
        "description": module.description,
        "scale": module.scale,
        "paper": dict(module.paper),
        "needs": [*_needs(compiled, table)],
        "scales": [*compiled.spec.scales],
        "params": dict(module.params),
        "discrepancies": [dict(found) for found in module.discrepancies],
    }


def _facts(paper: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    title = [_text(paper[key]) for key in ("title", "venue", "year") if paper.get(key)]
    if title:
        yield "paper", ", ".join(title)
    for key in ("arxiv", "url", "code"):
        if paper.get(key):
            yield key, _text(paper[key])


def _needs(compiled: Compilation, table: BackendTable) -> Iterator[str]:
    module = compiled.module
    assert module is not None
    jobs = () if compiled.plan is None else compiled.plan.jobs
    gpus = max((job.resources.gpus or 0 for job in jobs), default=0)
    yield f"GPUs: {f'{gpus} at most in one job' if gpus else 'none'}"
    repositories = {
        f"{job.draft.config['repo']} at {str(job.draft.config.get('revision'))[:12]}"
        for job in jobs
        if job.draft.config.get("repo")
    }
    if repositories:
        yield f"from the hub: {', '.join(sorted(repositories))}"
    yield from _entries(module, table)
    secrets = sorted({use.name for use in compiled.secrets})
    if secrets:
        yield f"secrets: {', '.join(secrets)}"
    if compiled.plan is not None:
        yield f"software: {', '.join(compiled.plan.software)}"


def _entries(module: Module, table: BackendTable) -> Iterator[str]:
    for what, entries in (("environment", module.environments), ("server", module.servers)):
        for name, entry in entries.items():
            backend = table.backends.get(entry.backend)
            yield f"{what} {name}: {entry.backend}"
            data = backend.data_sets if isinstance(backend, EnvironmentBackend) else ()
            for found in data:
                yield f"  data, if not the bundled: agentc data fetch {found.name} ({found.doc})"


def _text(value: Json) -> str:
    return value if isinstance(value, str) else str(value)
