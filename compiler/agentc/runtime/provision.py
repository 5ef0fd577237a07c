"""Provision: the software and the servers of a unit's jobs, ready before their programs start.

Neighbours: `unit.py` (the user), `unit_devices.py` (who sees which GPU), `servers/lease.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from agentc.runtime.machine.supervise import Supervisor
from agentc.runtime.member import JobRun
from agentc.runtime.servers import lease
from agentc.runtime.servers.job_leases import (
    asked_roles,
    asker_secrets,
    caller_secrets,
    needed_specs,
    server_identity,
    starts_server,
    taker_of,
)
from agentc.runtime.servers.server_copies import ServerCopies
from agentc.runtime.servers.shared_lease import SharedLease, SharedServers, await_ready
from agentc.runtime.software import environment
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.moved_programs import module_of
from agentc.runtime.store.plan_file import PlanFile
from agentc.runtime.store.staging import Staging
from agentc.runtime.unit_devices import DeviceViews, UnitDevices

AnyLease = Union[lease.LeasedServer, SharedLease]
_Pythons = Mapping[str, Tuple[Path, Dict[str, Any]]]


class Provision:
    """What one attempt of a unit has; `staging` is where its own servers write."""

    def __init__(
        self,
        layout: StoreLayout,
        plan: PlanFile,
        staging: Staging,
        supervisor: Supervisor,
        shared: SharedServers,
        devices: UnitDevices,
    ) -> None:
        self._layout = layout
        self._plan = plan
        self._staging = staging
        self._supervisor = supervisor
        self._shared = shared
        self._devices = devices
        self._names: Set[str] = set()

    def provide(self, members: Sequence[JobRun]) -> List[AnyLease]:
        """Software environments first, then servers; returns the servers, ready. Raises LeaseError,
        SoftwareEnvironmentError, DevicesError, StoppedError."""
        pythons = self._environments(members)
        started = [spec for member in members for spec in (member.job, *member.job["leases"])]
        modules = [module_of(spec["program"]) for spec in started]
        code = environment.code_directory(self._layout, modules)
        views = self._devices.divide(
            {
                server_identity(member.job, spec): taker_of(spec)
                for member in members
                for spec in member.job["leases"]
                if starts_server(spec) or self._declined(spec)
            }
        )
        leases: List[AnyLease] = []
        known: Dict[str, Union[AnyLease, ServerCopies]] = {}
        for member in members:
            self._prepare(member, pythons, code, views)
            for spec in member.job["leases"]:
                identity = server_identity(member.job, spec)
                if identity not in known and self._shared.serves(spec.get("server")):
                    of_others = self._shared.lease(spec)
                    known[identity] = of_others
                    leases.append(of_others)
                elif identity not in known:
                    copies = self._own_servers(member.job, spec, pythons, code, views)
                    known[identity] = ServerCopies(copies) if len(copies) > 1 else copies[0]
                    leases += copies
                member.leases.append(known[identity])
            if asked_roles(member.job):
                self._link(member, known)
        self._start(leases, members)
        return leases

    def _link(self, member: JobRun, known: Mapping[str, Union[AnyLease, ServerCopies]]) -> None:
        """Tell servers of the job's own which others they ask."""
        for spec in member.job["leases"]:
            needed = needed_specs(member.job, spec)
            asking = known[server_identity(member.job, spec)]
            for one in asking.copies if isinstance(asking, ServerCopies) else [asking]:
                if needed and isinstance(one, lease.LeasedServer):
                    one.needs = {
                        each["role"]: known[server_identity(member.job, each)] for each in needed
                    }

    def _prepare(self, member: JobRun, pythons: _Pythons, code: Path, views: DeviceViews) -> None:
        """What the job's program is started with."""
        job = member.job
        member.leases = []
        path, complete = pythons[job["environment"]]
        member.python = environment.python_command(path, complete, self._layout.root, code)
        member.environment = {
            "name": job["environment"],
            "lock": complete["lock"],
            "python": complete["python"],
            "versions": complete["versions"],
        }
        secrets = environment.resolve_secrets(caller_secrets(job))
        software = environment.programs_of(path, complete)
        member.variables = environment.job_variables(code, *_needs(job), secrets, software)
        member.variables.update(views.program)

    def _own_servers(
        self,
        job: Mapping[str, Any],
        spec: Dict[str, Any],
        pythons: _Pythons,
        code: Path,
        views: DeviceViews,
    ) -> List[lease.LeasedServer]:
        """A server that the job starts, in all its copies; or an endpoint, or an environment that
        its program opens."""
        identity = server_identity(job, spec)
        wanted = dict(spec.get("secrets") or {})
        if spec.get("needs"):
            wanted.update(asker_secrets(needed_specs(job, spec)))
        own = environment.resolve_secrets(wanted)
        python: List[str] = []
        software: Optional[Path] = None
        record: Dict[str, Any] = {}
        if spec.get("port") not in ("none", "inside"):
            path, complete = pythons[spec["environment"]]
            software = environment.programs_of(path, complete)
            python = environment.python_command(path, complete, self._layout.root, code)
            record = {"lock": complete["lock"], "python": complete["python"]}
        variables = environment.job_variables(code, *_needs(job), own, software)
        copies = []
        for number, shown in enumerate(views.server(identity)):
            server = lease.LeasedServer(
                spec,
                python=python,
                variables={**variables, **shown},
                model=self._served(job, spec),
                folder=self._staging.path,
                logs=self._staging.logs,
                name=lease.distinct_name(spec["role"], identity + str(number or ""), self._names),
            )
            if python:
                self._names.add(server.name)
                server.software = dict(record)
            copies.append(server)
        return copies

    def _start(self, leases: Sequence[AnyLease], members: Sequence[JobRun]) -> None:
        places = {self._staging, *(member.staging for member in members)}

        def report(message: str) -> None:
            for place in places:
                place.status("leases", message)

        # First those that may have to wait in a queue.
        others = [one for one in leases if isinstance(one, SharedLease)]
        if others:
            await_ready(others, self._supervisor, report)
        own_ones = [one for one in leases if isinstance(one, lease.LeasedServer) and not one.inside]
        if own_ones:
            report("starting " + ", ".join(one.role for one in own_ones))
            lease.start_all(own_ones, self._supervisor)

    def _environments(self, members: Sequence[JobRun]) -> _Pythons:
        wanted = {member.job["environment"] for member in members}
        for member in members:
            own = [
                spec for spec in member.job["leases"] if not self._shared.serves(spec.get("server"))
            ]
            wanted |= {spec["environment"] for spec in own} - {None}

        def report(line: str) -> None:
            for member in members:
                member.staging.status("environment", "%s: %s" % (name, line))

        found = {}
        for name in sorted(wanted):
            lock, text = self._plan.lock(name)
            with self._supervisor.interruptible():
                found[name] = environment.ensure_environment(self._layout, lock, text, report)
        return found

    def _declined(self, spec: Mapping[str, Any]) -> bool:
        """Whether it means a shared server that takes nobody any more."""
        return bool(spec.get("server")) and not self._shared.serves(spec.get("server"))

    def _served(self, job: Mapping[str, Any], spec: Mapping[str, Any]) -> Optional[Path]:
        """Directory of the checkpoint that a lease serves."""
        role = spec.get("input")
        objects = job["inputs"].get(role) if role else None
        return self._layout.data(objects[0]) if objects else None


def _needs(job: Mapping[str, Any]) -> Tuple[int, bool]:
    """Threads of the job's programs, and whether they may use the network."""
    return threads_of(job), bool((job.get("contract") or {}).get("network"))


def threads_of(job: Mapping[str, Any]) -> int:
    """Threads of each process of a job. Where processors compute, it is the number of cores: the
    last digits of what is computed depend on it. Processes on GPUs share them."""
    resources = job.get("resources") or {}
    cpus = int(resources.get("cpus") or 1)
    if resources.get("gpus"):
        cpus = max(1, cpus // int(job.get("processes") or 1))
    return int((job.get("placement") or {}).get("threads") or cpus)
