"""The leases of a job as its plan has them: which servers it starts, on how many GPUs, which are
one and the same, who requests which with which key, and what needs no server.

A server that uses others reads where they are from a file that AGENTC_LEASES names.
`server_process.py` starts servers, and `probe.py` checks them against the plan.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from agentc.program.job import read_json, recorded_account
from agentc.runtime.machine.hardware import DeviceTaker
from agentc.runtime.store.plan_file import module_of

LEASES_VARIABLE = "AGENTC_LEASES"


class PlannedLease:
    """A lease of a job. `spec` is all that the plan says of it: program and settings are for who
    starts it, and nobody else has to look there."""

    def __init__(self, job: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
        self._job = job
        self.spec = spec
        self.role: str = spec["role"]
        self.software: str | None = spec.get("software")
        """The software stack that its program runs in; None where nothing is ours."""
        self.server: str | None = spec.get("server") or None
        """The plan's shared server that is meant."""

    @property
    def inside(self) -> bool:
        """Whether it means an environment that the job's program opens in its own process."""
        return self.spec.get("port") == "inside"

    @property
    def remote(self) -> bool:
        """Whether it means somebody else's endpoint."""
        return self.spec.get("port") == "none"

    @property
    def starts_server(self) -> bool:
        """Whether it means a server that the job itself starts."""
        return not (self.inside or self.remote or self.server)

    @property
    def module(self) -> str:
        """The module that is its program; "" for another program."""
        return module_of(self.spec["program"])

    @property
    def taker(self) -> DeviceTaker:
        """What it says of the GPUs that its server takes."""
        devices = int(self.spec.get("devices") or 0)
        return DeviceTaker(self.role, self.spec["backend"], devices, self.spec.get("copies"))

    @property
    def served(self) -> Sequence[str]:
        """The objects of the input whose checkpoint it serves; none where it serves no input."""
        return self._job["inputs"].get(self.spec.get("input")) or ()

    @property
    def needed(self) -> list[PlannedLease]:
        """The leases of its job that it needs."""
        wanted = self.spec.get("needs") or ()
        return [each for each in planned_leases(self._job) if each.role in wanted]

    @property
    def secrets(self) -> dict[str, str]:
        """Environment variable -> name of the secret, of all that its server is given."""
        asked = asker_secrets([each.spec for each in self.needed])
        return {**(self.spec.get("secrets") or {}), **asked}

    @cached_property
    def identity(self) -> str:
        """Equal for leases of two jobs that mean one server, which a session starts once: all that
        it is started with, and what it serves, by whatever name (`input`) each job knows that."""
        parts: list[Any] = [{**self.spec, "input": None}, self.served or None]
        parts += [each.identity for each in self.needed]
        return json.dumps(parts, sort_keys=True)


class InsideLease:
    """An environment that a job's program opens in its own process: nothing is started. The
    program admits it (`admit_inside`) and so leaves `account`; `software` is the program's.
    """

    def __init__(self, planned: PlannedLease, account: Path, software: Mapping[str, Any]) -> None:
        self.role = planned.role
        self._planned = planned
        self._account = account
        self._software = software

    @property
    def endpoint(self) -> dict[str, Any]:
        """`{"inside": {"program", "settings", "expect", "account"}}` for the job file. A program
        without settings receives the words of its command line, those of its server among them."""
        spec = self._planned.spec
        words = {"{host}": "127.0.0.1", "{port}": "0", "{ready_file}": f"{self._account}.ready"}
        program, settings = spec["program"], spec.get("settings")
        return {
            "inside": {
                "program": program[:2] if settings else fill_placeholders(program, words),
                **({"settings": settings} if settings else {}),
                "expect": spec.get("expect") or {},
                "account": str(self._account),
            }
        }

    def manifest(self) -> dict[str, Any]:
        """What the manifest of the job says about this lease."""
        return {
            **planned_facts(self._planned.spec),
            "inside": True,
            "lock": self._software["lock"],
            "python": self._software["python"],
            **recorded_account(read_json(self._account)),
        }


def planned_leases(job: Mapping[str, Any]) -> list[PlannedLease]:
    """Those of a job, in the plan's order."""
    return [PlannedLease(job, spec) for spec in job.get("leases") or ()]


def planned_facts(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What manifests repeat of a plan's lease."""
    names = ("role", "backend", "version", "software", "identity", "served_name")
    return {name: spec.get(name) for name in names}


def job_device_takers(job: Mapping[str, Any]) -> dict[str, DeviceTaker]:
    """The servers that a job starts, by what tells them apart."""
    return {each.identity: each.taker for each in planned_leases(job) if each.starts_server}


def shared_takers(job: Mapping[str, Any]) -> Iterator[tuple[str, DeviceTaker]]:
    """The servers that a job has in common with others, by their ids in the plan."""
    for each in planned_leases(job):
        if each.server:
            yield each.server, each.taker


def needed_roles(job: Mapping[str, Any]) -> set[str]:
    """Roles of leases that other leases of the job need: its program is told nothing of them."""
    return {role for spec in job["leases"] for role in spec.get("needs") or ()}


def leased_secrets(job: Mapping[str, Any]) -> Iterator[Mapping[str, str]]:
    """The secrets of each lease: what its backend calls them -> their names."""
    for spec in job["leases"]:
        yield spec.get("secrets") or {}


def secret_variables(spec: Mapping[str, Any]) -> dict[str, str]:
    """What the backend of a remote endpoint calls its secrets -> the variable of the asking server
    that holds each; of an endpoint of ours there are none."""
    wanted = (spec.get("secrets") or {}) if spec.get("port") == "none" else {}
    return {name: f"{name}_{str(spec['role']).upper()}" for name in wanted}


def asker_secrets(specs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Variable of the asking server -> name of the secret, for all servers that it asks."""
    return {
        variable: spec["secrets"][name]
        for spec in specs
        for name, variable in secret_variables(spec).items()
    }


def caller_variables(job: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Role of each remote endpoint with secrets -> what its backend calls them -> the variable of
    the job's program that holds the value. No two have one in common, so that no endpoint is sent
    what is another's."""
    taken = set(job.get("secrets") or {})
    found: dict[str, dict[str, str]] = {}
    others = needed_roles(job)  # whose keys are no concern of the program's
    for spec in job["leases"]:
        wanted = spec.get("secrets") if spec.get("port") == "none" else None
        if wanted and spec["role"] not in others:
            suffix = "_" + str(spec["role"]).upper()
            own = {name: name + suffix if name in taken else name for name in wanted}
            found[spec["role"]] = own
            taken.update(own.values())
    return found


def caller_secrets(job: Mapping[str, Any]) -> dict[str, str]:
    """Environment variable -> name of the secret, of all that the job's program is given."""
    found = dict(job.get("secrets") or {})
    variables = caller_variables(job)
    for spec in job["leases"]:
        for name, variable in variables.get(spec["role"], {}).items():
            found[variable] = spec["secrets"][name]
    return found


def write_leases(path: Path, leases: Mapping[str, Any]) -> None:
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


def fill_placeholders(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Words of a program with their placeholders (`{port}`, ...) replaced; other braces stay."""
    filled = []
    for word in words:
        for placeholder, value in values.items():
            word = word.replace(placeholder, value)
        filled.append(word)
    return filled
