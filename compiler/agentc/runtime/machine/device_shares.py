"""How the GPUs of a job are shared within it: each server of its own has some, and its program what
they leave. Pure numbers; `agentc.runtime.unit_devices` has the GPUs, preflight asks beforehand.

A lease says by `devices` how many GPUs its program takes. Where none says it, the model's server
has all.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, Tuple

from agentc.runtime.lease_roles import is_model_server

AUTO = "auto"


class TooFewDevicesError(Exception):
    """Servers that would have to share a GPU; the message says how many are needed."""


def starts_server(spec: Mapping[str, Any]) -> bool:
    """Whether a lease means a server that the job itself starts."""
    return spec.get("port") not in ("none", "inside") and not spec.get("server")


def divide(
    names: Sequence[str], servers: Mapping[str, Mapping[str, Any]]
) -> Tuple[Dict[str, List[List[str]]], List[str]]:
    """GPUs of each copy of each server, by what it is called here, and of the program. `servers`
    are leases. Raises TooFewDevicesError."""
    wanted = wanted_devices(servers, len(names))
    said = {name: wanted[name] * number_of_copies(servers[name], 0) for name in servers}
    copies = {
        name: number_of_copies(spec, len(names), sum(said.values()) - said[name])
        for name, spec in servers.items()
    }
    needed = sum(wanted[name] * copies[name] for name in servers)
    if needed > len(names):
        takers = [
            "the %s server (%s) %d" % (spec["role"], spec["backend"], wanted[name] * copies[name])
            for name, spec in servers.items()
            if wanted[name]
        ]
        raise TooFewDevicesError(
            "its servers take %d GPUs and there are %d: %s. No two servers share one; ask for "
            "`placement: {gpus: %d}`" % (needed, len(names), ", ".join(takers), needed)
        )
    left = list(names)
    given: Dict[str, List[List[str]]] = {}
    for name in servers:
        given[name] = []
        for _ in range(copies[name]):
            given[name].append(left[: wanted[name]])
            left = left[wanted[name] :]
    return given, left


def wanted_devices(servers: Mapping[str, Mapping[str, Any]], there: int) -> Dict[str, int]:
    """How many a copy of each takes, where so many are there."""
    said = {name: int(spec.get("devices") or 0) for name, spec in servers.items()}
    if any(said.values()):
        return said
    # Plans of before, and servers that do not say: they may use whatever they see.
    models = [name for name, spec in servers.items() if is_model_server(spec["role"])]
    return {name: there if [name] == models[:1] else 0 for name in servers}


def number_of_copies(spec: Mapping[str, Any], there: int, others: int = 0) -> int:
    """Of a server within a job that has so many GPUs, of which other servers take some."""
    said, each = spec.get("copies"), int(spec.get("devices") or 0)
    if said == AUTO:
        return max(1, (there - others) // each) if each else 1
    return int(said or 1)
