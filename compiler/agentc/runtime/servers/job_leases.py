"""What the leases of a job say to whoever prepares it: which servers it starts, on how many GPUs,
which are one and the same, and who asks which with which key. Callers get that alone, not the lease
with its program and its settings.

A server that asks others reads where they are from a file that AGENTC_LEASES names. Neighbours:
`lease.py`, which starts them, and `agentc.runtime.provision`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Set, Tuple

from agentc.runtime.machine.device_shares import DeviceTaker

LEASES_VARIABLE = "AGENTC_LEASES"


def starts_server(spec: Mapping[str, Any]) -> bool:
    """Whether a lease means a server that the job itself starts."""
    return spec.get("port") not in ("none", "inside") and not spec.get("server")


def taker_of(spec: Mapping[str, Any]) -> DeviceTaker:
    """What a lease says of the GPUs that its server takes."""
    devices = int(spec.get("devices") or 0)
    return DeviceTaker(spec["role"], spec["backend"], devices, spec.get("copies"))


def own_takers(job: Mapping[str, Any]) -> Dict[str, DeviceTaker]:
    """The servers that a job starts, by what tells them apart."""
    return {
        server_identity(job, spec): taker_of(spec) for spec in job["leases"] if starts_server(spec)
    }


def shared_takers(job: Mapping[str, Any]) -> Iterator[Tuple[str, DeviceTaker]]:
    """The servers that a job has in common with others, by their ids in the plan."""
    for spec in job["leases"]:
        if spec.get("server"):
            yield str(spec["server"]), taker_of(spec)


def server_identity(job: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """Equal for leases of two jobs that mean one server, which a session starts once: everything
    that it is started with, and what it serves, by whatever name (`input`) each job knows that."""
    name = spec.get("input")
    parts: List[Any] = [{**spec, "input": None}, job["inputs"].get(name) if name else None]
    parts += [server_identity(job, each) for each in needed_specs(job, spec)]
    return json.dumps(parts, sort_keys=True)


def asked_roles(job: Mapping[str, Any]) -> Set[str]:
    """Roles of leases that other leases of the job need: its program is told nothing of them."""
    return {role for spec in job["leases"] for role in spec.get("needs") or ()}


def needed_specs(job: Mapping[str, Any], spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The leases of a job that one of them needs."""
    wanted = spec.get("needs") or ()
    return [other for other in job["leases"] if other["role"] in wanted]


def leased_secrets(job: Mapping[str, Any]) -> Iterator[Mapping[str, str]]:
    """The secrets of each lease: what its backend calls them -> their names."""
    for spec in job["leases"]:
        yield spec.get("secrets") or {}


def secret_variables(spec: Mapping[str, Any]) -> Dict[str, str]:
    """What the backend of a remote endpoint calls its secrets -> the variable of the asking server
    that holds each; of an endpoint of ours there are none."""
    wanted = (spec.get("secrets") or {}) if spec.get("port") == "none" else {}
    return {name: "%s_%s" % (name, str(spec["role"]).upper()) for name in wanted}


def asker_secrets(specs: Sequence[Mapping[str, Any]]) -> Dict[str, str]:
    """Variable of the asking server -> name of the secret, for all servers that it asks."""
    return {
        variable: spec["secrets"][name]
        for spec in specs
        for name, variable in secret_variables(spec).items()
    }


def caller_variables(job: Mapping[str, Any]) -> Dict[str, Dict[str, str]]:
    """Role of each remote endpoint with secrets -> what its backend calls them -> the variable of
    the job's program that holds the value. No two have one in common, so that no endpoint is sent
    what is another's."""
    taken = set(job.get("secrets") or {})
    found: Dict[str, Dict[str, str]] = {}
    others = asked_roles(job)  # whose keys are no concern of the program's
    for spec in job["leases"]:
        wanted = spec.get("secrets") if spec.get("port") == "none" else None
        if wanted and spec["role"] not in others:
            suffix = "_" + str(spec["role"]).upper()
            own = {name: name + suffix if name in taken else name for name in wanted}
            found[spec["role"]] = own
            taken.update(own.values())
    return found


def caller_secrets(job: Mapping[str, Any]) -> Dict[str, str]:
    """Environment variable -> name of the secret, of all that the job's program is given."""
    found = dict(job.get("secrets") or {})
    variables = caller_variables(job)
    for spec in job["leases"]:
        for name, variable in variables.get(spec["role"], {}).items():
            found[variable] = spec["secrets"][name]
    return found


def tell(path: Path, leases: Mapping[str, Any]) -> None:
    """Write where the servers are, by role, each as in a job's file, for this user alone. Tokens
    of ours stand there, keys of others do not: `secrets` names their variables."""
    told = {}
    for role, lease in leases.items():
        told[role] = dict(lease.endpoint)
        variables = secret_variables(lease.spec)
        if variables:
            told[role]["secrets"] = variables
    if path.exists():
        path.unlink()
    descriptor = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(told, file, sort_keys=True)
