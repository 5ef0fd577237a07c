"""How the GPUs of a job are shared within it: each server of its own has some, and its program what
they leave. Pure numbers; `agentc.runtime.unit_devices` has the GPUs, preflight asks beforehand.

A lease says by `devices` how many GPUs its program takes. Where none says it, the model's server
has all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agentc.lease_roles import is_model_server

AUTO = "auto"


class TooFewDevicesError(Exception):
    """Servers that would have to share a GPU; the message says how many are needed."""


class DeviceTaker(NamedTuple):
    """A server by what decides on its GPUs: how many each copy takes, where its lease says it, and
    how many copies of it there are (`AUTO`: as many as there is room for)."""

    role: str
    backend: str
    devices: int = 0
    copies: int | str | None = None

    def number_of_copies(self, there: int, others: int = 0) -> int:
        """Within a job that has so many GPUs, of which other servers take some."""
        if self.copies == AUTO:
            return max(1, (there - others) // self.devices) if self.devices else 1
        return int(self.copies or 1)


def divide(
    names: Sequence[str], servers: Mapping[str, DeviceTaker]
) -> tuple[dict[str, list[list[str]]], list[str]]:
    """GPUs of each copy of each server, by what it is called here, and of the program. Raises
    TooFewDevicesError."""
    wanted = wanted_devices(servers, len(names))
    said = {name: wanted[name] * servers[name].number_of_copies(0) for name in servers}
    copies = {
        name: each.number_of_copies(len(names), sum(said.values()) - said[name])
        for name, each in servers.items()
    }
    needed = sum(wanted[name] * copies[name] for name in servers)
    if needed > len(names):
        takers = [
            f"the {each.role} server ({each.backend}) {wanted[name] * copies[name]}"
            for name, each in servers.items()
            if wanted[name]
        ]
        raise TooFewDevicesError(
            "its servers take %d GPUs and there are %d: %s. No two servers share one; ask for "
            "`placement: {gpus: %d}`" % (needed, len(names), ", ".join(takers), needed)
        )
    left = list(names)
    given: dict[str, list[list[str]]] = {}
    for name in servers:
        given[name] = []
        for _ in range(copies[name]):
            given[name].append(left[: wanted[name]])
            left = left[wanted[name] :]
    return given, left


def wanted_devices(servers: Mapping[str, DeviceTaker], there: int) -> dict[str, int]:
    """How many a copy of each takes, where so many are there."""
    said = {name: each.devices for name, each in servers.items()}
    if any(said.values()):
        return said
    # Plans of before, and servers that do not say: they may use whatever they see.
    models = [name for name, each in servers.items() if is_model_server(each.role)]
    return {name: there if [name] == models[:1] else 0 for name in servers}
