"""Wrapper: what prepares, starts, watches and publishes one job, or the members of one session.

It locks the objects, provides software stacks and servers, runs the programs, and publishes.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentc import __version__
from agentc.runtime.job_run import TRY_AGAIN, JobRun, report_failures
from agentc.runtime.machine import allocation, process
from agentc.runtime.machine.allocation import stop_by
from agentc.runtime.machine.hardware import DevicesError, MachineProbe
from agentc.runtime.machine.output_filters import Redactor
from agentc.runtime.machine.process import StoppedError
from agentc.runtime.machine.supervise import Supervisor
from agentc.runtime.provision import AnyLease, Provision
from agentc.runtime.servers import server_group, server_process
from agentc.runtime.servers.job_leases import leased_secrets, shared_takers
from agentc.runtime.servers.shared_server import (
    BLAME_S,
    SharedServer,
    SharedServerLostError,
    SharedServers,
)
from agentc.runtime.software import job_software, variables
from agentc.runtime.store import file_system
from agentc.runtime.store.file_system import explain_os_error
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.object_lock import Heartbeat, LostClaimError, ObjectLock, claim_all
from agentc.runtime.store.plan_file import PlanFile
from agentc.runtime.store.staging import Staging, publish
from agentc.runtime.unit_devices import (
    SUBMITTED,
    UnitDevices,
    node_server_gpus,
    unleased_request,
)

_POLL_S = 0.2


_FAILURES = (
    server_process.LeaseError,
    job_software.SoftwareError,
    allocation.NotGrantedError,
    DevicesError,
    OSError,
    StoppedError,
)


@dataclass(slots=True)
class _Run:
    """What a wrapper holds while it works: its claims, its members, their servers and GPUs."""

    claims: Mapping[str, ObjectLock]
    machine: MachineProbe
    members: Sequence[JobRun]
    staging: Staging
    """Of the session, or of the only job."""
    request: Mapping[str, str]
    """What the queue was asked for."""
    apart: Mapping[str, int]
    """GPUs of servers that jobs of this node share."""
    shared: SharedServers
    devices: UnitDevices | None = None
    redactor: Redactor = field(default_factory=Redactor)

    @property
    def places(self) -> set[Staging]:
        return {self.staging, *(member.staging for member in self.members)}


class Wrapper:
    """What one wrapper works on: a job, or a session with its members."""

    def __init__(
        self,
        layout: StoreLayout,
        plan: PlanFile,
        jobs: list[dict[str, Any]],
        session: dict[str, Any] | None,
        asked: str = "",
    ) -> None:
        self.layout = layout
        self.plan = plan
        self.jobs = jobs
        self.session = session
        self.asked = asked
        self.objects = [object_name(job) for job in jobs]
        self.name = "session/" + session["key"] if session else self.objects[0]
        self.mark = process.mark(self.name, str(layout.root))
        self.started = 0.0
        self.secrets: list[str] = []

    def published(self) -> bool:
        """Whether there is nothing to do."""
        return all(map(self.layout.is_published, {self.name, *self.objects}))

    def run(self) -> int:
        """Do the work under the claims on all objects; returns the exit status."""
        claims = claim_all(self.layout, self._wanted(), self.published, self._print)
        if claims is None:
            return 0
        try:
            return self._run({claim.name: claim for claim in claims})
        except LostClaimError as error:
            # The staging directory belongs to another now: not even a status is written.
            print(f"agentc: job {self._id()} stops: {error}", file=sys.stderr)
            return TRY_AGAIN
        finally:
            for claim in claims:
                claim.release()

    def _run(self, claims: Mapping[str, ObjectLock]) -> int:
        self.started = time.time()
        run = self._prepare(claims)
        try:
            self._acquire(run)
            self._attempt_until_done(run)
        except _FAILURES as error:
            message = self._fail(run, error)
            if isinstance(error, StoppedError):
                raise
            print(f"agentc: job {self._id()} failed: {message}", file=sys.stderr)
            return 1
        finally:
            run.shared.leave()
            if run.devices is not None:
                run.devices.release()
        return report_failures(run.members, run.staging if self.session else None)

    def _prepare(self, claims: Mapping[str, ObjectLock]) -> _Run:
        """The members that are not published, in clean staging directories."""
        machine = MachineProbe()
        members = [
            JobRun(self.layout, job, self.started, machine, claims[object_name(job)])
            for job in self.jobs
            if not self.layout.is_published(object_name(job))
        ]
        staging = Staging(self.layout, self.name) if self.session else members[0].staging
        for place in {staging, *(member.staging for member in members)}:
            self._end_stragglers(place)
        for member in members:
            member.staging.prepare(member.id, self.mark, bool(member.job.get("resume")))
        if self.session:
            staging.prepare(self.session["id"], self.mark, False)
        request = allocation.read_request(self.asked)
        apart = node_server_gpus(self.jobs, self.plan, request)
        leasing = {} if SUBMITTED in request else apart
        shared = SharedServers(self.layout, self.plan, self.name, leasing)
        return _Run(claims, machine, members, staging, request, apart, shared)

    def _acquire(self, run: _Run) -> None:
        """Check what the machine gives, read the secrets, and wait for the GPUs."""

        def warn(text: str) -> None:
            print(f"agentc: {self._id()}: {text}", file=sys.stderr)
            for place in run.places:
                place.warning = "; ".join(filter(None, (place.warning, text)))

        def wait(until: Callable[[], bool]) -> None:
            run.machine.describe()  # what it asks must not be ended with the supervisor
            with self._supervisor(run) as supervisor:
                supervisor.wait(until, every=_POLL_S)

        def report(text: str) -> None:
            for place in run.places:
                place.status("waiting", text)

        allocation.assert_granted(
            unleased_request(run.request, os.environ),
            os.environ,
            lambda: list(run.machine.describe()["gpus"]),
            warn,
        )
        run.devices = UnitDevices(run.request, os.environ, self._id(), run.apart)
        run.shared.show(run.devices.of_node)
        self._resolve_secrets(run.members)
        run.redactor, limit = Redactor(self.secrets), stop_by(os.environ)
        for member in run.members:
            member.redactor, member.stop_by = run.redactor, limit
            member.purge()
        # Before the supervisor of the work: its watchdog inherits the lease, and holds it for as
        # long as anything of a killed wrapper is left.
        run.devices.acquire(wait, report)
        run.machine.given = run.devices.names

    def _attempt_until_done(self, run: _Run) -> None:
        """Work on what is not settled; again, a few times, when a shared server was lost."""
        while True:
            open_ones = [member for member in run.members if not member.settled]
            run.shared.join({name for one in open_ones for name, _ in shared_takers(one.job)})
            try:
                self._attempt(run, open_ones)
                return
            except SharedServerLostError as lost:
                if not run.shared.again(lost):
                    raise
                note = f"agentc: job {self._id()}: {lost}; once more, {run.shared.tries}"
                print(run.redactor.clean_text(note), file=sys.stderr)
                for member in open_ones:
                    member.interrupt()

    def _attempt(self, run: _Run, open_ones: Sequence[JobRun]) -> None:
        """Run what is not settled yet, and publish the session when all is well."""
        assert run.devices is not None
        with self._supervisor(run) as supervisor:
            leases: list[AnyLease] = []
            if open_ones:
                provision = Provision(
                    self.layout, self.plan, run.staging, supervisor, run.shared, run.devices
                )
                leases = provision.provide(open_ones)
                self._work(open_ones, leases, supervisor)
            if self.session and all(member.failure is None for member in run.members):
                server_group.end_all(leases, supervisor)
                run.redactor.clean_files(run.staging.logs)
                manifest = self._session_manifest(leases, run.machine)
                claim = run.claims[self.name]
                publish(self.layout, run.staging, manifest, supervisor.redactor, claim)

    def _fail(self, run: _Run, error: Exception) -> str:
        """Write down why the open members failed; returns it for people. Raises LostClaimError
        when the staging directories belong to another by now."""
        for claim in run.claims.values():
            if not _still_mine(claim):
                raise LostClaimError(claim.name) from error
        cause = explain_os_error(error, "the staged work of " + self.name, run.staging.path)
        message = Redactor(self.secrets).clean_text(str(cause))
        for member in run.members:
            if not member.settled:
                member.fail(message)
        if self.session:
            run.staging.status("failed", message)
        return message

    def _supervisor(self, run: _Run) -> Supervisor:
        return Supervisor(self.mark, run.redactor, Heartbeat(list(run.claims.values())))

    def _id(self) -> str:
        return str(self.session["id"] if self.session else self.jobs[0]["id"])

    def _wanted(self) -> dict[str, list[str]]:
        """Every object that is claimed, with those that making it reads."""
        wanted = {
            object_name(job): [name for names in job["inputs"].values() for name in names]
            for job in self.jobs
        }
        return {self.name: [], **wanted}

    def _print(self, text: str) -> None:
        print(f"agentc: {self._id()}: {text}", file=sys.stderr)

    def _end_stragglers(self, staging: Staging) -> None:
        """End what an earlier, killed attempt left behind. We hold its locks: it is over."""
        previous = staging.previous_mark()
        if previous is not None:
            process.end_marked(previous)

    def _resolve_secrets(self, members: Sequence[JobRun]) -> None:
        variables.declare_secrets(self.plan.secret_names())
        for member in members:
            own = member.job.get("secrets") or {}
            self.secrets += job_software.resolve_secrets(own, sent=False).values()
            for wanted in leased_secrets(member.job):
                self.secrets += job_software.resolve_secrets(wanted, sent=True).values()

    def _work(
        self, members: Sequence[JobRun], leases: Sequence[AnyLease], supervisor: Supervisor
    ) -> None:
        own: Sequence[AnyLease] = [] if self.session else leases
        for member in members:
            missing = member.blocked()
            if missing is not None:
                member.staging.status("waiting", f"for {missing}")
        # What another node has published may take a while to show here.
        deadline = time.monotonic() + file_system.visibility_timeout(self.layout)

        def advance() -> bool:
            if self._finish_ended(members, own, leases, supervisor):
                return True
            if not all(member.settled for member in members):
                _raise_for_the_dead(leases)
            blocked = _start_due(members, supervisor)
            if blocked and time.monotonic() < deadline:
                for _, missing in blocked:
                    file_system.refresh(self.layout.object(missing).parent)
            elif not any(member.running or member.resting for member in members):
                _fail_blocked(members, blocked)
            return all(member.settled for member in members)

        supervisor.wait(advance)

    def _finish_ended(
        self,
        members: Sequence[JobRun],
        own: Sequence[AnyLease],
        leases: Sequence[AnyLease],
        supervisor: Supervisor,
    ) -> bool:
        """Finish the jobs whose programs have ended; whether the only one is published."""
        for member in members:
            if member.child is not None and member.child.status is not None:
                if member.child.status != 0 and leases:
                    self._blame_server(leases, supervisor)
                member.finish(supervisor, own)
                if member.published and own:
                    return True
        return False

    def _blame_server(self, leases: Sequence[AnyLease], supervisor: Supervisor) -> None:
        """A program may notice the death of its server before we do."""

        def poll() -> bool:
            _raise_for_the_dead(leases, sure=True)
            return False

        silent = any(isinstance(one, SharedServer) and one.silent() for one in leases)
        supervisor.wait(poll, timeout=BLAME_S if silent else 0.5, every=0.1)

    def _session_manifest(
        self, leases: Sequence[AnyLease], machine: MachineProbe
    ) -> dict[str, Any]:
        assert self.session is not None
        ended = time.time()
        return {
            "id": self.session["id"],
            "kind": "session",
            "key": self.session["key"],
            "type": "Session",
            "agentc": __version__,
            "members": {job["id"]: object_name(job) for job in self.jobs},
            "inputs": {"members": self.objects},
            "leases": [one.manifest() for one in leases],
            "hardware": machine.describe(),
            "started": self.started,
            "wall_s": round(ended - self.started, 3),
            "facts": {},
        }


def _start_due(members: Sequence[JobRun], supervisor: Supervisor) -> list[tuple[JobRun, str]]:
    """Start the jobs whose time has come; those that an input is missing for, with its name."""
    blocked = []
    for member in members:
        if member.due():
            missing = member.blocked()
            if missing is None:
                member.start(supervisor)
            else:
                blocked.append((member, missing))
    return blocked


def _fail_blocked(members: Sequence[JobRun], blocked: Sequence[tuple[JobRun, str]]) -> None:
    """Nobody is left who could still publish what they wait for."""
    late = any(member.out_of_time for member in members)
    for member, missing in blocked:
        member.fail(f"its input {missing} is not in the store", late)


def _raise_for_the_dead(leases: Sequence[AnyLease], sure: bool = False) -> None:
    """LeaseError when a server is gone; SharedServerLostError when it was a shared one."""
    gone = server_group.dead(
        [one for one in leases if isinstance(one, server_process.ServerProcess)]
    )
    if gone is not None:
        raise server_process.LeaseError(server_group.death_message(gone))
    for one in leases:
        message = one.death(sure) if isinstance(one, SharedServer) else None
        if message is not None:
            raise SharedServerLostError(message)


def _still_mine(claim: ObjectLock) -> bool:
    """Whether it is; yes when the store cannot tell, for then it has a trouble of its own."""
    try:
        return claim.is_mine()
    except OSError:
        return True


def object_name(job: Mapping[str, Any]) -> str:
    """The object that a job makes, `<kind>/<key>`."""
    return f"{job['kind']}/{job['key']}"
