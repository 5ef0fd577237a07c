"""Provision: the software and the servers of a unit's jobs, ready before their programs start.

`wrapper.py` uses it; `unit_devices.py` says which process sees which GPU.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentc.runtime.job_run import JobRun
from agentc.runtime.machine.supervise import Supervisor
from agentc.runtime.servers import server_group, server_process
from agentc.runtime.servers.job_leases import (
    InsideLease,
    PlannedLease,
    caller_secrets,
    needed_roles,
)
from agentc.runtime.servers.server_group import ServerCopies
from agentc.runtime.servers.shared_server import SharedServer, SharedServers, await_ready
from agentc.runtime.software import job_software
from agentc.runtime.software.variables import variables_of_index
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.plan_file import PlanFile, module_of
from agentc.runtime.store.staging import Staging
from agentc.runtime.unit_devices import DeviceViews, UnitDevices

AnyLease = server_process.ServerProcess | SharedServer
_Pythons = Mapping[str, tuple[Path, dict[str, Any]]]


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
        self._names: set[str] = set()

    def provide(self, members: Sequence[JobRun]) -> list[AnyLease]:
        """Software stacks first, then servers; returns the servers, ready. Raises LeaseError,
        SoftwareError, DevicesError, StoppedError."""
        planned = [lease for member in members for lease in member.planned]
        views = self._devices.divide(
            {
                lease.identity: lease.taker
                for lease in planned
                if lease.starts_server or self._declined(lease)
            }
        )
        takers = self._gpu_software(members, views)
        self._assert_driver(takers)
        pythons = self._stacks(members)
        self._assert_compiler(members, takers, pythons)
        modules = [module_of(member.job["program"]) for member in members]
        modules += [lease.module for lease in planned]
        code = job_software.code_directory(self._layout, modules, self._plan.code())
        leases: list[AnyLease] = []
        by_identity: dict[str, AnyLease | ServerCopies] = {}
        for member in members:
            self._prepare(member, pythons, code, views)
            for lease in member.planned:
                if lease.inside:
                    account = member.staging.account_file
                    member.leases.append(InsideLease(lease, account, member.software))
                    continue
                if lease.identity not in by_identity and self._shared.serves(lease.server):
                    of_others = self._shared.lease(lease.spec)
                    by_identity[lease.identity] = of_others
                    leases.append(of_others)
                elif lease.identity not in by_identity:
                    copies = self._job_servers(member.job, lease, pythons, code, views)
                    by_identity[lease.identity] = (
                        ServerCopies(copies) if len(copies) > 1 else copies[0]
                    )
                    leases += copies
                member.leases.append(by_identity[lease.identity])
            if needed_roles(member.job):
                self._link(member, by_identity)
        self._start(leases, members)
        return leases

    def _link(self, member: JobRun, by_identity: Mapping[str, AnyLease | ServerCopies]) -> None:
        """Tell servers of the job's own which others they ask."""
        for lease in member.planned:
            if not lease.needed:
                continue
            asking = by_identity[lease.identity]
            for server in asking.copies if isinstance(asking, ServerCopies) else [asking]:
                if isinstance(server, server_process.ServerProcess):
                    server.needs = {
                        other.role: by_identity[other.identity] for other in lease.needed
                    }

    def _prepare(self, member: JobRun, pythons: _Pythons, code: Path, views: DeviceViews) -> None:
        """What the job's program is started with."""
        job = member.job
        member.leases = []
        path, complete = pythons[job["software"]]
        member.python = job_software.python_command(path, complete, self._layout.root, code)
        member.software = {
            "name": job["software"],
            "lock": complete["lock"],
            "python": complete["python"],
            "versions": complete["versions"],
        }
        secrets = job_software.resolve_secrets(caller_secrets(job))
        programs = job_software.programs_of(path, complete)
        member.variables = job_software.job_variables(code, *_needs(job), secrets, programs)
        if (job.get("contract") or {}).get("package_index"):
            member.variables.update(variables_of_index(os.environ))
        member.variables.update(views.program)
        member.gpus = views.gpus

    def _job_servers(
        self,
        job: Mapping[str, Any],
        planned: PlannedLease,
        pythons: _Pythons,
        code: Path,
        views: DeviceViews,
    ) -> list[server_process.ServerProcess]:
        """A server that the job starts, in all its copies; or somebody else's endpoint."""
        own = job_software.resolve_secrets(planned.secrets)
        python: list[str] = []
        programs: Path | None = None
        record: dict[str, Any] = {}
        if not planned.remote:
            path, complete = pythons[str(planned.software)]
            programs = job_software.programs_of(path, complete)
            python = job_software.python_command(path, complete, self._layout.root, code)
            record = {"lock": complete["lock"], "python": complete["python"]}
        variables = job_software.job_variables(code, *_needs(job), own, programs)
        copies = []
        served = [self._layout.data(name) for name in planned.served[:1]]
        for number, shown in enumerate(views.server(planned.identity)):
            name = planned.identity + str(number or "")
            server = server_process.ServerProcess(
                planned.spec,
                python=python,
                variables={**variables, **shown},
                model=served[0] if served else None,
                folder=self._staging.path,
                logs=self._staging.logs,
                name=server_group.distinct_name(planned.role, name, self._names),
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
        others = [server for server in leases if isinstance(server, SharedServer)]
        if others:
            await_ready(others, self._supervisor, report)
        own_ones = [server for server in leases if isinstance(server, server_process.ServerProcess)]
        if own_ones:
            # Some start for minutes: where to look meanwhile.
            report(", ".join(f"{server.role}: {server.log}" for server in own_ones))
            server_group.start_all(own_ones, self._supervisor)

    def _gpu_software(self, members: Sequence[JobRun], views: DeviceViews) -> set[str]:
        """Names of the software stacks of programs and servers that have GPUs."""
        names = {str(member.job["software"]) for member in members if views.gpus}
        for member in members:
            taking = [
                lease for lease in member.planned if lease.starts_server and lease.taker.devices
            ]
            names |= {str(lease.software) for lease in taking if any(views.server(lease.identity))}
        return names

    def _assert_driver(self, names: set[str]) -> None:
        """Raise SoftwareError, before anything is built, where the CUDA of a software
        stack needs a newer driver than this machine has."""
        if not names:
            return
        # Imported late: few jobs have GPUs, and every one would pay for it.
        from agentc.runtime.software.host_requirements import (
            driver_fault,
            driver_version,
            software_cuda,
        )

        driver = driver_version()
        for name in sorted(names):
            lock, text = self._plan.lock(name)
            built = job_software.read_complete(self._layout.software_stack(lock)) or {}
            cuda = software_cuda(text, built.get("versions") or {})
            fault = driver_fault(cuda, driver, os.environ)
            if fault is not None:
                raise job_software.SoftwareError(
                    f"the software stack {name} cannot use the GPUs of this machine: {fault}"
                )

    def _assert_compiler(
        self, members: Sequence[JobRun], gpus: set[str], pythons: _Pythons
    ) -> None:
        """Raise SoftwareError where a program compiles code while it runs, and this
        machine has no compiler or no Python headers."""
        words: dict[str, list[str]] = {name: [] for name in gpus}
        for member in members:
            for lease in member.planned:
                if lease.starts_server and lease.software and lease.software not in words:
                    words[lease.software] = lease.spec["program"]
        for name in sorted(words):
            _, record = pythons[name]
            _, text = self._plan.lock(name)
            if record.get("container"):
                continue
            # Imported late: few jobs need a compiler.
            from agentc.runtime.software.host_requirements import compiler_fault, compiles

            package = compiles(text, name in gpus, words[name])
            if package is not None:
                fault = compiler_fault(package, name in gpus, record.get("interpreter"), os.environ)
                if fault is not None:
                    raise job_software.SoftwareError(fault)

    def _stacks(self, members: Sequence[JobRun]) -> _Pythons:
        wanted = {member.job["software"] for member in members}
        for member in members:
            own = [lease for lease in member.planned if not self._shared.serves(lease.server)]
            wanted |= {lease.software for lease in own} - {None}

        def report(line: str) -> None:
            for member in members:
                member.staging.status("software", f"{name}: {line}")

        pythons = {}
        for name in sorted(wanted):
            lock, text = self._plan.lock(name)
            with self._supervisor.interruptible():
                pythons[name] = job_software.ensure_software(self._layout, lock, text, report)
        return pythons

    def _declined(self, planned: PlannedLease) -> bool:
        """Whether it means a shared server that takes nobody any more."""
        return planned.server is not None and not self._shared.serves(planned.server)


def _needs(job: Mapping[str, Any]) -> tuple[int, bool]:
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
