"""Rules about processes, CPUs, GPUs and memory: what a job asks for against what it starts."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.backend_api.parallel import MULTINODE
from agentc.diagnostics.codes.code import Code
from agentc.kinds.table import TRAINERS, WITHOUT_MODEL, kinds_where
from agentc.passes.checks.parallel import PARALLEL, UNEVEN_NODES
from agentc.passes.checks.rule import Finding, Rule, divisors_near, either
from agentc.passes.checks.subject import StageContext
from agentc.text import counted

_PLACED = kinds_where(lambda kind: not kind.gathers)
_LEAST_MEMORY = 512
"""MiB below which a number is rather one of GiB: Python with an HTTP client takes about 100."""


def gpu_per_process(subject: StageContext) -> Iterator[Finding]:
    """Where a trainer has GPUs, each of its `processes` has one."""
    processes = subject.settings.integer("processes") or 1
    gpus = subject.settings.integer("placement.gpus") or 0
    if not gpus or processes <= gpus:
        return
    yield Finding(
        message=f"{processes} training processes cannot run on {counted(gpus, 'GPU', 'GPUs')}",
        path="processes",
        expected="a GPU for each process",
        notes=(subject.settings.note("placement.gpus"),),
        fix=f"set processes to {gpus}, or placement.gpus to {processes}",
    )


def enough_cpus(subject: StageContext) -> Iterator[Finding]:
    """A trainer has at least one CPU core for each of its `processes`."""
    processes = subject.settings.integer("processes") or 1
    cpus = subject.settings.integer("placement.cpus")
    if cpus is None or cpus >= processes:
        return
    yield Finding(
        message=f"{processes} training processes share {counted(cpus, 'CPU core', 'CPU cores')}",
        path="placement.cpus",
        notes=(subject.settings.note("processes"),),
        fix=f"set placement.cpus to {processes} or more, or processes to {cpus}",
    )


def memory_in_mib(subject: StageContext) -> Iterator[Finding]:
    """`placement.mem_mb` counts MiB; a number too small for any job is one of GiB."""
    memory = subject.settings.integer("placement.mem_mb")
    if memory is None or memory >= _LEAST_MEMORY:
        return
    yield Finding(
        message=f"`{subject.stage.id}` requests {memory} MiB of memory, in which no job runs",
        path="placement.mem_mb",
        notes=("mem_mb counts MiB; a cluster ends a job that takes more than it asked for",),
        fix=f"set placement.mem_mb to {memory * 1024} for {memory} GiB",
    )


def nodes_can_be_used(subject: StageContext) -> Iterator[Finding]:
    """Only a trainer or server that can spread its processes over nodes asks for several."""
    nodes = subject.settings.integer("placement.nodes") or 1
    if nodes == 1:
        return
    stage = subject.stage
    message, fix = "", "leave placement.nodes out"
    if stage.kind in TRAINERS:
        backend = subject.table.backends.get(stage.backend)
        if backend is None or MULTINODE in backend.capabilities:
            return
        able = [
            each.id
            for each in subject.table.stage_backends(stage.kind)
            if MULTINODE in each.capabilities
        ]
        message = f"{stage.backend} trains on one node, and `{stage.id}` requests {nodes}"
        fix = f"use {' or '.join(able)}, or set placement.nodes to 1" if able else fix
    elif (served := subject.server()) is not None and stage.kind not in WITHOUT_MODEL:
        backend_of_server, server = served
        scope = server.text("scope")
        if scope == "shared":
            message = f"`{server.name}` is a job of its own, and `{stage.id}` requests {nodes}"
            fix = f"leave placement.nodes out here; servers.{server.name}.placement is the server's"
        elif scope == "node":
            message = f"`{server.name}` is a server of one node, and `{stage.id}` requests {nodes}"
            fix = "leave placement.nodes out, or write `scope: job` or `scope: shared`"
        elif MULTINODE in backend_of_server.capabilities:
            return
        else:
            name = backend_of_server.id
            message = f"{name} serves from one node, and `{stage.id}` requests {nodes}"
            able = [each.id for each in subject.table.servers() if MULTINODE in each.capabilities]
            others = f"use {' or '.join(able)}, " if able else ""
            fix = f"{others}set placement.nodes to 1, or name an endpoint that somebody starts "
            fix += "across nodes (backend: openai)"
    else:
        message = f"a stage of kind {stage.kind} runs on one node, and requests {nodes}"
    yield Finding(message=message, path="placement.nodes", fix=fix)


def nodes_share_equally(subject: StageContext) -> Iterator[Finding]:
    """`processes` and `placement.gpus` count all nodes together, and each node has the same."""
    settings = subject.settings
    nodes = settings.integer("placement.nodes") or 1
    for path in ("processes", "placement.gpus"):
        count = settings.integer(path) or (1 if path == "processes" else 0)
        if count % nodes:
            yield Finding(
                message=f"{nodes} nodes cannot share {count} "
                f"{'training processes' if path == 'processes' else 'GPUs'} equally",
                path=path if settings.is_set(path) else "placement.nodes",
                notes=(settings.note("placement.nodes"),),
                fix=f"set {path} to {count + nodes - count % nodes}, or placement.nodes to "
                f"{either(divisors_near(count, nodes))}",
            )


MACHINES: tuple[Rule, ...] = (
    Rule(
        code=Code(
            "AGC621",
            "more training processes than GPUs",
            "Each training process takes a GPU of its own; two on one GPU end in an error after "
            "the job has waited in the queue.",
        ),
        kinds=TRAINERS,
        check=gpu_per_process,
    ),
    Rule(
        code=Code(
            "AGC623",
            "fewer CPU cores than processes",
            "Training processes that share a core wait for each other at every step.",
        ),
        kinds=TRAINERS,
        check=enough_cpus,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC626",
            "less memory than any job needs",
            "`mem_mb` counts MiB. A number that suits GiB makes a cluster end the job at its "
            "start.",
        ),
        kinds=_PLACED,
        check=memory_in_mib,
        severity="warning",
    ),
    Rule(
        code=Code(
            "AGC698",
            "nodes that nothing spreads over",
            "Several nodes are for trainers and servers that start a process on each and let them "
            "find each other. Anything else would run on the first node and hold the others idle.",
        ),
        kinds=_PLACED,
        check=nodes_can_be_used,
    ),
    Rule(code=UNEVEN_NODES, kinds=TRAINERS, check=nodes_share_equally),
    *PARALLEL,
)
