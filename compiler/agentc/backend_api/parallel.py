"""How a model is shared between devices and nodes: the sizes that a spec leaves open.

Servers lower these sizes to their flags, and the compiler's checks compare them with `placement:`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from agentc.kinds.field import Json

MULTINODE = "multinode"
"""The capability of trainers and servers whose processes find each other across nodes."""
GPU = "gpu"
"""The capability of servers whose program works on GPUs."""
Allocation: TypeAlias = tuple[int, int | None, bool]
"""Nodes, and GPUs of all of them, that a server may spread over; and whether it has GPUs at all."""
ONE_NODE: Allocation = (1, None, False)


def allocation_of(placement: Mapping[str, Json]) -> Allocation:
    """What `placement:` gives a server that spreads over nodes; one node's GPUs are not asked."""
    nodes, given = placement.get("nodes"), placement.get("gpus")
    gpus = given if isinstance(given, int) and given > 0 else None
    if not isinstance(nodes, int) or nodes <= 1:
        return 1, None, gpus is not None
    return nodes, gpus, gpus is not None


def sizes_of(setting: Callable[[str], Json], nodes: int, gpus: int | None) -> tuple[int, int]:
    """`parallel_sizes` of a server, by its settings of these names."""
    tensor, pipeline = setting("tensor_parallel"), setting("pipeline_parallel")
    return parallel_sizes(
        tensor if isinstance(tensor, int) else None,
        pipeline if isinstance(pipeline, int) else None,
        nodes,
        gpus,
    )


def devices_of(setting: Callable[[str], Json], nodes: int, gpus: int | None) -> int:
    """How many devices a server spreads over."""
    tensor, pipeline = sizes_of(setting, nodes, gpus)
    return tensor * pipeline


def parallel_sizes(
    tensor: int | None, pipeline: int | None, nodes: int, gpus: int | None
) -> tuple[int, int]:
    """(tensor, pipeline) parallel sizes; None for what the spec does not say.

    Tensor parallelism talks after every layer, so it stays within a node, on as many devices as a
    node has; the pipeline goes over the nodes, and over what is left. On one node, or without
    GPUs (one process for each node then), a size that is not said is 1.
    """
    if nodes == 1:
        return tensor or 1, pipeline or 1
    devices = gpus or nodes
    if tensor is None:
        tensor = max(1, devices // (pipeline or nodes)) if gpus else 1
    if pipeline is None:
        pipeline = max(1, devices // tensor) if gpus else nodes
    return tensor, pipeline
