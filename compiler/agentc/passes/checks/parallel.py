"""Rules about GPUs: how servers share a model between them, against what they get, and which ones
nobody uses, whoever asks for them.

A server within its jobs gets what the stage's `placement:` asks for, one of `scope: shared` what
its own does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentc.backend_api.parallel import MULTINODE, sizes_of
from agentc.diagnostics.codes.code import Code
from agentc.ir.module import Resource
from agentc.kinds.table import LEASING, REINFORCED, SERVED, TRAINERS, WITHOUT_MODEL, kinds_where
from agentc.passes.checks.model_servers import (
    POLICY,
    LeasedModelServer,
    leased_servers,
    local_server_devices,
    simulator_servers,
)
from agentc.passes.checks.model_shape import model_shape
from agentc.passes.checks.rule import Finding, Rule, divisors_near, either
from agentc.passes.checks.subject import Settings, StageContext
from agentc.text import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a server spreads. `place` says what it gets: the stage, or the server's entry where that
    is a job of its own (`entry`, else None)."""

    leased: LeasedModelServer
    place: Settings
    entry: Resource | None
    nodes: int
    gpus: int | None
    tensor: int
    pipeline: int

    @property
    def server(self) -> Settings:
        """The server's own."""
        return self.leased.settings

    @property
    def devices(self) -> int:
        """GPUs, or processes on CPUs, that it takes."""
        return self.tensor * self.pipeline

    @property
    def uneven(self) -> bool:
        """Whether the nodes cannot have equal parts: that is said alone, the rest follows."""
        return self.devices % self.nodes != 0

    @property
    def product(self) -> str:
        """For notes: `tensor_parallel 4 x pipeline_parallel 2 = 8 devices`."""
        if self.pipeline == 1:
            return f"tensor_parallel {self.tensor} takes {counted(self.tensor, 'device')}"
        sizes = f"tensor_parallel {self.tensor} x pipeline_parallel {self.pipeline}"
        return f"{sizes} = {self.devices} devices"

    @property
    def stated(self) -> tuple[str, ...]:
        """For notes: the sizes that the spec gives, with their places."""
        names = ("tensor_parallel", "pipeline_parallel")
        return tuple(self.server.note(name) for name in names if self.server.is_set(name))[:1]


def shape_of(subject: StageContext) -> Shape | None:
    """The shape of the stage's own server; None for one that cannot spread over devices."""
    return next((each for each in shapes_of(subject) if each.leased.role == POLICY), None)


def shapes_of(subject: StageContext) -> Iterator[Shape]:
    """Those of all model servers that it leases."""
    return map(_shape, spreading_servers(subject))


def spreading_servers(subject: StageContext) -> Iterator[LeasedModelServer]:
    """The model servers that it leases and that can spread over devices."""
    for leased in leased_servers(subject):
        if leased.settings.declares("tensor_parallel"):
            yield leased


def _shape(leased: LeasedModelServer) -> Shape:
    server, place = leased.settings, leased.place
    several = MULTINODE in leased.backend.capabilities and server.text("scope") != "node"
    nodes = (place.integer("placement.nodes") or 1) if several else 1
    gpus = place.integer("placement.gpus")
    tensor, pipeline = sizes_of(server.get, nodes, gpus)
    return Shape(
        leased=leased,
        place=place,
        entry=server.entry if leased.is_shared and isinstance(server.entry, Resource) else None,
        nodes=nodes,
        gpus=gpus,
        tensor=tensor,
        pipeline=pipeline,
    )


def parallel_within_gpus(subject: StageContext) -> Iterator[Finding]:
    """The server's tensor_parallel x pipeline_parallel devices are within the GPUs it gets."""
    for shape in shapes_of(subject):
        yield from _within_gpus(shape)


def _within_gpus(shape: Shape) -> Iterator[Finding]:
    if shape.devices == 1 or shape.uneven:
        return
    needed, gpus = shape.devices, shape.gpus
    if gpus is not None and gpus >= needed:
        return
    has = "no GPU" if not gpus else counted(gpus, "GPU", "GPUs")
    who, asks = (
        shape.leased.who,
        "the stage requests" if shape.entry is None else "its placement requests",
    )
    without = "server" if shape.entry is None else "placement"
    yield Finding(
        message=f"{who} spreads over {needed} devices, but {asks} for {has}",
        path="placement.gpus" if gpus is not None else without,
        at=shape.entry,
        # Without GPUs a CPU build may still share layers between sockets or nodes.
        severity="error" if gpus else "warning",
        notes=(shape.product, *shape.stated),
        fix=f"set placement: {{gpus: {needed}}}"
        + (f", or tensor_parallel to {gpus}" if gpus and shape.pipeline == 1 else ""),
    )


def idle_gpus(subject: StageContext) -> Iterator[Finding]:
    """No GPU is reserved that nothing of the stage can use."""
    settings, stage = subject.settings, subject.stage
    gpus = settings.integer("placement.gpus") or 0
    if not gpus:
        return
    used, why, fix = gpus, "", ""
    asked = sum(
        local_server_devices(subject, each) or 0 for each in simulator_servers(subject).values()
    )
    if stage.kind in TRAINERS:
        used = settings.integer("processes") or 1
        why = settings.note("processes")
        fix = f"set processes to {gpus}, or placement.gpus to {used}"
    elif stage.kind in WITHOUT_MODEL:
        used, why = 0, f"a stage of kind {stage.kind} runs no model"
        fix = "set placement.gpus to 0 here"
    elif stage.kind in REINFORCED:
        backend = subject.table.backends.get(stage.backend)
        if backend is None or "gpu" in backend.capabilities:
            return
        used, why = 0, f"{stage.backend} computes on the CPU"
        fix = "set placement.gpus to 0 here"
    elif settings.get("parts") is not None and "revision" not in settings.texts("parts"):
        used, why = 0, "only the part `revision` calls the model"
        fix = "set placement.gpus to 0 here"
    elif subject.server() is not None:
        used, why, fix = _used_by_server(subject, gpus)
    used += asked
    if used >= gpus:
        return
    yield Finding(
        message=f"{_share(gpus - used, gpus)} of `{stage.id}` "
        f"{'stays' if gpus - used == 1 else 'stay'} idle",
        path="placement.gpus",
        notes=(why,),
        fix=fix,
    )


def _used_by_server(subject: StageContext, gpus: int) -> tuple[int, str, str]:
    served, shape = subject.server(), shape_of(subject)
    assert served is not None
    name, capabilities = served[0].id, served[0].capabilities
    if "remote" in capabilities:
        return 0, f"{name} is external endpoint", "set placement.gpus to 0"
    if "gpu" not in capabilities:
        return 0, f"{name} serves on CPUs", "set placement.gpus to 0, or use a server for GPUs"
    if shape is None or shape.entry is not None or shape.uneven:
        return gpus, "", ""
    copies = 1
    if shape.server.text("scope") not in ("node", "shared") and shape.nodes == 1:
        copies = shape.server.integer("replicas") or max(1, gpus // shape.devices)
    used = shape.devices * copies
    return (
        used,
        f"the server's {shape.product}" + (f", in {copies} copies" if copies > 1 else ""),
        f"set placement.gpus to {used}, or tensor_parallel to use them",
    )


def server_gpus_idle(subject: StageContext) -> Iterator[Finding]:
    """No GPU is reserved for a shared server that it does not spread over."""
    for shape in shapes_of(subject):
        yield from _idle(shape)


def _idle(shape: Shape) -> Iterator[Finding]:
    if shape.entry is None or not shape.gpus or shape.uneven:
        return
    idle = shape.gpus - shape.devices
    if idle <= 0:
        return
    yield Finding(
        message=f"{idle} of the {shape.gpus} GPUs of the server `{shape.server.name}` "
        f"{'stays' if idle == 1 else 'stay'} idle",
        path="placement.gpus",
        at=shape.entry,
        notes=(shape.product,),
        fix=f"set placement.gpus to {shape.devices}, or tensor_parallel to use them",
    )


def heads_divide(subject: StageContext) -> Iterator[Finding]:
    """The attention heads of a model divide by the server's tensor_parallel, where known."""
    for shape in shapes_of(subject):
        for role in shape.leased.models:
            yield from _heads(subject, shape, role)


def _heads(subject: StageContext, shape: Shape, role: str) -> Iterator[Finding]:
    model, known = subject.model(role), model_shape(subject, role)
    if model is None or known is None:
        return
    wanted, heads = shape.tensor, known.heads
    if heads % wanted == 0:
        return
    yield Finding(
        message=f"tensor_parallel {wanted} cannot share the {heads} attention heads of "
        f"`{model.name}`",
        path="tensor_parallel",
        at=shape.server.entry,
        notes=(
            f"{heads} / {wanted} = {heads / wanted:g} heads for each device",
            model.note("repo" if subject.scratch_model(role) is None else "heads"),
        ),
        fix=f"set tensor_parallel to {either(divisors_near(heads, wanted))}",
    )


def server_nodes_share_equally(subject: StageContext) -> Iterator[Finding]:
    """Each node of a server has the same number of its GPUs, and of its devices."""
    for shape in shapes_of(subject):
        yield from _share_equally(shape)


def _share_equally(shape: Shape) -> Iterator[Finding]:
    if shape.nodes == 1:
        return
    nodes, shown = shape.nodes, shape.place.note("placement.nodes")
    if shape.gpus and shape.gpus % nodes:
        count = shape.gpus
        yield Finding(
            message=f"{nodes} nodes cannot share {count} GPUs equally",
            path="placement.gpus",
            at=shape.entry,
            notes=(shown,),
            fix=f"set placement.gpus to {count + nodes - count % nodes}, or placement.nodes to "
            f"{either(divisors_near(count, nodes))}",
        )
    elif shape.uneven:
        given = shape.server.is_set("tensor_parallel")
        yield Finding(
            message=f"{nodes} nodes cannot share the {counted(shape.devices, 'device')} of the "
            f"server `{shape.server.name}` equally",
            path="tensor_parallel" if given else "pipeline_parallel",
            at=shape.server.entry,
            notes=(shape.product, shown),
            fix=f"set pipeline_parallel to {nodes}, the number of nodes, or leave both sizes out",
        )


def _share(idle: int, gpus: int) -> str:
    if idle == gpus:
        return "the GPU" if gpus == 1 else f"the {gpus} GPUs"
    return f"{idle} of the {gpus} GPUs"


IDLE_GPUS = Code(
    "AGC622",
    "GPUs that stay idle",
    "The stage reserves GPUs that nothing in it can use: fewer processes than GPUs, a server "
    "on CPUs or elsewhere, or no model at all.",
)
UNEVEN_NODES = Code(
    "AGC699",
    "nodes that do not share equally",
    "`processes`, `placement.gpus` and a server's tensor_parallel x pipeline_parallel count "
    "all nodes together. Each node starts the same number of processes, and each process has "
    "one GPU or none.",
)

PARALLEL: tuple[Rule, ...] = (
    Rule(
        code=IDLE_GPUS,
        kinds=kinds_where(
            lambda kind: kind.name in (*TRAINERS, *SERVED, *WITHOUT_MODEL, *REINFORCED)
        ),
        check=idle_gpus,
        severity="warning",
    ),
    Rule(code=IDLE_GPUS, kinds=LEASING, check=server_gpus_idle, severity="warning"),
    Rule(
        code=Code(
            "AGC624",
            "a server that needs more devices than it gets",
            "tensor_parallel x pipeline_parallel is the number of devices that the server spreads "
            "over; `placement.gpus` of the stage, or of a shared server, is the number that it "
            "gets.",
        ),
        kinds=LEASING,
        check=parallel_within_gpus,
    ),
    Rule(
        code=Code(
            "AGC625",
            "attention heads that tensor_parallel does not divide",
            "Tensor parallelism gives each device the same number of attention heads.",
        ),
        kinds=LEASING,
        check=heads_divide,
    ),
    Rule(code=UNEVEN_NODES, kinds=LEASING, check=server_nodes_share_equally),
)
