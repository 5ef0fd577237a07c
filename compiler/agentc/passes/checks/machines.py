"""Rules about processes, CPUs, GPUs and memory: what a job asks for against what it starts."""

from __future__ import annotations

from collections.abc import Iterator

from agentc.passes.checks.rule import Finding, Rule
from agentc.passes.checks.subject import Settings, Subject
from agentc.passes.checks.text import divisors_near, either, plural, plural_of

_TRAINERS = ("sft", "dpo")
_SERVED = ("rollout", "search", "revise", "evaluate")
_WITHOUT_MODEL = ("expert", "dataset", "mix", "pair", "compare")
MULTINODE = "multinode"
"""The capability of trainers whose processes find each other across nodes."""
_LEAST_MEMORY = 512
"""MiB below which a number is rather one of GiB: Python with an HTTP client takes about 100."""


def gpu_for_each_process(subject: Subject) -> Iterator[Finding]:
    """Where a trainer has GPUs, each of its `processes` has one."""
    processes = subject.settings.integer("processes") or 1
    gpus = subject.settings.integer("placement.gpus") or 0
    if not gpus or processes <= gpus:
        return
    yield Finding(
        message=f"{processes} training processes cannot run on {plural_of(gpus, 'GPU', 'GPUs')}",
        path="processes",
        expected="a GPU for each process",
        notes=(subject.settings.shown("placement.gpus"),),
        fix=f"set processes to {gpus}, or placement.gpus to {processes}",
    )


def idle_gpus(subject: Subject) -> Iterator[Finding]:
    """No GPU is reserved that nothing of the stage can use."""
    settings, stage = subject.settings, subject.stage
    gpus = settings.integer("placement.gpus") or 0
    used, why, fix = gpus, "", ""
    if stage.kind in _TRAINERS:
        used = settings.integer("processes") or 1
        why = settings.shown("processes")
        fix = f"set processes to {gpus}, or placement.gpus to {used}"
    elif stage.kind in _WITHOUT_MODEL:
        used, why = 0, f"a stage of kind {stage.kind} runs no model"
        fix = "set placement.gpus to 0 here"
    elif stage.kind == "revise" and "revision" not in settings.texts("parts"):
        used, why = 0, "only the part `revision` asks the model"
        fix = "set placement.gpus to 0 here"
    elif (served := subject.server()) is not None:
        backend, server = served
        used, why, fix = _used_by_server(backend.id, backend.capabilities, server, gpus)
    if used >= gpus:
        return
    yield Finding(
        message=f"{_share(gpus - used, gpus)} of `{stage.id}` "
        f"{'stays' if gpus - used == 1 else 'stay'} idle",
        path="placement.gpus",
        notes=(why,),
        fix=fix,
    )


def _used_by_server(
    name: str, capabilities: frozenset[str], server: Settings, gpus: int
) -> tuple[int, str, str]:
    if "remote" in capabilities:
        return 0, f"{name} is somebody else's endpoint", "set placement.gpus to 0"
    if "gpu" not in capabilities:
        return 0, f"{name} serves on CPUs", "set placement.gpus to 0, or use a server for GPUs"
    devices = _devices(server)
    if devices is None:
        return gpus, "", ""
    used = devices[0] * devices[1]
    why = f"the server's {_product(*devices)}"
    return used, why, f"set placement.gpus to {used}, or tensor_parallel to use them"


def enough_cpus(subject: Subject) -> Iterator[Finding]:
    """A trainer has at least one CPU core for each of its `processes`."""
    processes = subject.settings.integer("processes") or 1
    cpus = subject.settings.integer("placement.cpus")
    if cpus is None or cpus >= processes:
        return
    yield Finding(
        message=f"{processes} training processes share {plural_of(cpus, 'CPU core', 'CPU cores')}",
        path="placement.cpus",
        notes=(subject.settings.shown("processes"),),
        fix=f"set placement.cpus to {processes} or more, or processes to {cpus}",
    )


def parallel_within_gpus(subject: Subject) -> Iterator[Finding]:
    """The server's tensor_parallel x pipeline_parallel devices are within the stage's GPUs."""
    served = subject.server()
    devices = None if served is None else _devices(served[1])
    if served is None or devices is None or devices[0] * devices[1] == 1:
        return
    server = served[1]
    needed, gpus = devices[0] * devices[1], subject.settings.integer("placement.gpus")
    if gpus is not None and gpus >= needed:
        return
    has = "no GPU" if not gpus else plural_of(gpus, "GPU", "GPUs")
    yield Finding(
        message=f"the server of `{subject.stage.id}` spreads over {needed} devices, but the stage "
        f"asks for {has}",
        path="placement.gpus" if gpus is not None else "server",
        # Without GPUs a CPU build may still share layers between sockets.
        severity="error" if gpus else "warning",
        notes=(_product(*devices), server.shown("tensor_parallel")),
        fix=f"set placement: {{gpus: {needed}}}"
        + (f", or tensor_parallel to {gpus}" if gpus and devices[1] == 1 else ""),
    )


def heads_divide(subject: Subject) -> Iterator[Finding]:
    """The attention heads of a model made here divide by the server's tensor_parallel."""
    served, model = subject.server(), subject.scratch_model()
    if served is None or model is None:
        return
    wanted, heads = served[1].integer("tensor_parallel") or 1, model.integer("heads")
    if heads is None or heads % wanted == 0:
        return
    yield Finding(
        message=f"tensor_parallel {wanted} cannot share the {heads} attention heads of "
        f"`{model.name}`",
        path="tensor_parallel",
        at=served[1].entry,
        notes=(
            f"{heads} / {wanted} = {heads / wanted:g} heads for each device",
            model.shown("heads"),
        ),
        fix=f"set tensor_parallel to {either(divisors_near(heads, wanted))}",
    )


def memory_in_mib(subject: Subject) -> Iterator[Finding]:
    """`placement.mem_mb` counts MiB; a number too small for any job is one of GiB."""
    memory = subject.settings.integer("placement.mem_mb")
    if memory is None or memory >= _LEAST_MEMORY:
        return
    yield Finding(
        message=f"`{subject.stage.id}` asks for {memory} MiB of memory, in which no job runs",
        path="placement.mem_mb",
        notes=("mem_mb counts MiB; a cluster ends a job that takes more than it asked for",),
        fix=f"set placement.mem_mb to {memory * 1024} for {memory} GiB",
    )


def nodes_can_be_used(subject: Subject) -> Iterator[Finding]:
    """Only a trainer that can spread its processes over nodes asks for several."""
    nodes = subject.settings.integer("placement.nodes") or 1
    if nodes == 1:
        return
    stage = subject.stage
    message, fix = "", "leave placement.nodes out"
    if stage.kind in _TRAINERS:
        backend = subject.table.backends.get(stage.backend)
        if backend is None or MULTINODE in backend.capabilities:
            return
        able = [
            each.id
            for each in subject.table.stage_backends(stage.kind)
            if MULTINODE in each.capabilities
        ]
        message = f"{stage.backend} trains on one node, and `{stage.id}` asks for {nodes}"
        fix = f"use {' or '.join(able)}, or set placement.nodes to 1" if able else fix
    elif (served := subject.server()) is not None and stage.kind not in _WITHOUT_MODEL:
        message = f"{served[0].id} serves from one node, and `{stage.id}` asks for {nodes}"
        fix = (
            "set placement.nodes to 1: tensor_parallel and pipeline_parallel share a model between "
            "the GPUs of a node, and a model that one node cannot hold needs an endpoint that "
            "somebody starts across nodes (backend: openai)"
        )
    else:
        message = f"a stage of kind {stage.kind} runs on one node, and asks for {nodes}"
    yield Finding(message=message, path="placement.nodes", fix=fix)


def nodes_share_equally(subject: Subject) -> Iterator[Finding]:
    """`processes` and `placement.gpus` count all nodes together, and each node has the same."""
    settings = subject.settings
    nodes = settings.integer("placement.nodes") or 1
    for path in ("processes", "placement.gpus"):
        count = settings.integer(path) or (1 if path == "processes" else 0)
        if count % nodes:
            yield Finding(
                message=f"{nodes} nodes cannot share {count} "
                f"{'training processes' if path == 'processes' else 'GPUs'} equally",
                path=path if settings.given(path) else "placement.nodes",
                notes=(settings.shown("placement.nodes"),),
                fix=f"set {path} to {count + nodes - count % nodes}, or placement.nodes to "
                f"{either(divisors_near(count, nodes))}",
            )


def _devices(server: Settings) -> tuple[int, int] | None:
    """(tensor, pipeline) of a server that can spread over devices."""
    tensor = server.integer("tensor_parallel")
    return None if tensor is None else (tensor, server.integer("pipeline_parallel") or 1)


def _share(idle: int, gpus: int) -> str:
    if idle == gpus:
        return "the GPU" if gpus == 1 else f"the {gpus} GPUs"
    return f"{idle} of the {gpus} GPUs"


def _product(tensor: int, pipeline: int) -> str:
    if pipeline == 1:
        return f"tensor_parallel {tensor} takes {plural(tensor, 'device')}"
    return f"tensor_parallel {tensor} x pipeline_parallel {pipeline} = {tensor * pipeline} devices"


MACHINES: tuple[Rule, ...] = (
    Rule(code="AGC621", kinds=_TRAINERS, check=gpu_for_each_process),
    Rule(
        code="AGC622",
        kinds=(*_TRAINERS, *_SERVED, *_WITHOUT_MODEL),
        check=idle_gpus,
        severity="warning",
    ),
    Rule(code="AGC623", kinds=_TRAINERS, check=enough_cpus, severity="warning"),
    Rule(code="AGC624", kinds=_SERVED, check=parallel_within_gpus),
    Rule(code="AGC625", kinds=_SERVED, check=heads_divide),
    Rule(
        code="AGC626",
        kinds=(*_TRAINERS, *_SERVED, *_WITHOUT_MODEL, "model"),
        check=memory_in_mib,
        severity="warning",
    ),
    Rule(
        code="AGC698",
        kinds=(*_TRAINERS, *_SERVED, *_WITHOUT_MODEL, "model"),
        check=nodes_can_be_used,
    ),
    Rule(code="AGC699", kinds=_TRAINERS, check=nodes_share_equally),
)
