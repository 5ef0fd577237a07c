"""Runs `cases/<pass>/<case>.yaml` through the compiler and compares with `<case>.expected`.

An expected file holds the diagnostics, then what the pass is responsible for. Write them anew
with `AGENTC_UPDATE=1 pytest tests/passes/test_cases.py`, and read the difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from toy_table import toy_table

from agentc.diagnostics import Sink, render_text
from agentc.front.read_module import build_module
from agentc.kinds import kind_named
from agentc.passes import PASSES, PassContext, Unit, run_passes
from agentc.source.load import load_bytes

CASES = Path(__file__).parent / "cases"
TABLE = toy_table()


def compiled(path: Path) -> tuple[Unit, Sink]:
    sink = Sink()
    source, root = load_bytes(path.read_bytes(), path.name, sink)
    spec, module = build_module(source, root, {}, TABLE, sink)
    context = PassContext(table=TABLE, sink=sink, directory=path.parent)
    return run_passes(Unit(spec=spec, module=module), context, verify=True), sink


def edges(unit: Unit) -> Iterator[str]:
    assert unit.module is not None
    for stage in unit.module.stages.values():
        for role, producers in stage.inputs.items():
            for producer in producers:
                kind = kind_named(unit.module.stages[producer].kind)
                assert kind is not None
                yield f"{stage.id}.{role} <- {producer}: {kind.produces.name}"


def choices(unit: Unit) -> Iterator[str]:
    for choice in unit.choices:
        yield f"{choice.stage}: {choice.backend} ({choice.reason})"
        for name, reason in choice.rejected:
            yield f"    not {name}: {reason}"


def jobs(unit: Unit) -> Iterator[str]:
    for job in () if unit.plan is None else unit.plan.jobs:
        yield f"{job.id}: {job.draft.kind} by {job.draft.backend} in {job.software}"
        yield f"    settings {job.identity['settings']}"
        yield f"    facts {job.identity['facts']}"
        for role, names in job.inputs.items():
            yield f"    {role} <- {', '.join(names)}"
        for lease in (one.draft for one in job.leases):
            yield f"    leases {lease.role} {lease.backend} {dict(lease.identity)} of {lease.input}"
        asked = job.resources
        yield f"    requests {asked.cpus} cpus, {asked.gpus} gpus; placement {job.draft.placement}"


def sessions(unit: Unit) -> Iterator[str]:
    for session in () if unit.plan is None else unit.plan.sessions:
        yield f"{session.id}: {', '.join(session.members)}"


def servers(unit: Unit) -> Iterator[str]:
    for server in () if unit.plan is None else unit.plan.servers:
        asked, place = server.resources, dict(server.placement)
        yield f"{server.id}: {server.scope}, {server.replicas} of {server.lease.draft.backend}"
        yield f"    serves {server.model} to {', '.join(server.clients)}"
        yield f"    requests {asked.cpus} cpus, {asked.gpus} gpus; placement {place}"
    yield from sessions(unit)


def memory(unit: Unit) -> Iterator[str]:
    if unit.plan is not None:
        for holder in (*unit.plan.jobs, *unit.plan.servers):
            if (found := holder.memory) is not None:
                parts = ", ".join(f"{name} {size}" for name, size in found.parts.items())
                yield f"{holder.id}: {found.gpus} GPUs with {found.device} of {found.room} each"
                yield f"    {parts}; requests {found.mem_mb} MiB, stages {found.staging}"


def whole(unit: Unit) -> Iterator[str]:
    if unit.plan is not None:
        yield f"targets: {', '.join(unit.plan.targets)}"
        for name, value in unit.plan.experiment.items():
            yield f"{name}: {value}"


SHOWN: dict[str, Callable[[Unit], Iterator[str]]] = {
    "infer_artifacts": edges,
    "choose_backends": choices,
    "check_settings": lambda unit: iter(()),
    "lower": jobs,
    "share_servers": servers,
    "fuse_servers": sessions,
    "forecast_memory": memory,
    "finish": whole,
}


@pytest.mark.parametrize(
    "case", sorted(CASES.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_case(case: Path) -> None:
    unit, sink = compiled(case)
    shown = [] if sink.has_errors else list(SHOWN[case.parent.name](unit))
    text = render_text(sink.sorted()) + "".join(f"{line}\n" for line in shown)
    expected = case.with_suffix(".expected")
    if os.environ.get("AGENTC_UPDATE"):
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")


def test_every_pass_has_cases() -> None:
    without = {"assign_keys"}  # see tests/identity
    assert {path.name for path in CASES.iterdir()} == {p.__name__ for p in PASSES} - without


def test_passes_say_what_they_require_and_ensure() -> None:
    for transform in PASSES:
        text = __import__(transform.__module__, fromlist=["x"]).__doc__ or ""
        assert "Requires:" in text, transform.__name__
        assert "Ensures:" in text, transform.__name__
