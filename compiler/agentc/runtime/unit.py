"""Unit: what one wrapper works on, a job alone or the members of a session on shared servers.

It locks the objects, provides software environments and servers, runs the programs, and publishes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from agentc import __version__
from agentc.runtime import environment, lease, process, prologue, visible
from agentc.runtime.claim import Claim, LostClaimError
from agentc.runtime.claiming import claim_all
from agentc.runtime.hardware import Machine
from agentc.runtime.keeper import Keeper
from agentc.runtime.layout import StoreLayout
from agentc.runtime.member import TRY_AGAIN, Member, tell_failures
from agentc.runtime.plan_file import PlanFile
from agentc.runtime.publish import publish
from agentc.runtime.redact import Redactor
from agentc.runtime.shared_lease import (
    BLAME_S,
    SharedLease,
    SharedServerLostError,
    SharedServers,
    await_ready,
)
from agentc.runtime.staging import Staging
from agentc.runtime.stopping import StoppedError
from agentc.runtime.supervise import Supervisor
from agentc.runtime.time_limit import stop_by
from agentc.runtime.trouble import told

AnyLease = Union[lease.Lease, SharedLease]


class Unit:
    """What one wrapper works on: a job, or a session with its members."""

    def __init__(
        self,
        layout: StoreLayout,
        plan: PlanFile,
        jobs: List[Dict[str, Any]],
        session: Optional[Dict[str, Any]],
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
        self.secrets: List[str] = []

    def published(self) -> bool:
        """Whether there is nothing to do."""
        return all(map(self.layout.is_published, {self.name, *self.objects}))

    def run(self) -> int:
        """Do the work under the claims on all objects; returns the exit status."""
        claims = claim_all(self.layout, self._wanted(), self.published, self._say)
        if claims is None:
            return 0
        try:
            return self._run({claim.name: claim for claim in claims})
        except LostClaimError as error:
            # The staging directory belongs to another now: not even a status is written.
            print("agentc: job %s stops: %s" % (self._id(), error), file=sys.stderr)
            return TRY_AGAIN
        finally:
            for claim in claims:
                claim.release()

    def _run(self, claims: Mapping[str, Claim]) -> int:
        self.started = time.time()
        machine = Machine()
        members = [
            Member(self.layout, job, self.started, machine, claims[object_name(job)])
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
        shared = SharedServers(self.layout, self.plan, self.name)
        try:
            prologue.assert_granted(
                prologue.read_asked(self.asked),
                os.environ,
                lambda: list(machine.describe()["gpus"]),
                lambda text: print("agentc: %s: %s" % (self._id(), text), file=sys.stderr),
            )
            self._resolve_secrets(members)
            redactor, limit = Redactor(self.secrets), stop_by(os.environ)
            for member in members:
                member.redactor, member.stop_by = redactor, limit
                member.purge()
            while True:
                open_ones = [member for member in members if not member.settled]
                specs = [spec for member in open_ones for spec in member.job["leases"]]
                shared.join([spec for spec in specs if spec.get("server")])
                try:
                    self._attempt(members, open_ones, staging, shared, redactor, machine, claims)
                    break
                except SharedServerLostError as lost:
                    if not shared.again(lost):
                        raise
                    note = "%s; once more, %s" % (lost, shared.tries)
                    print(redactor.clean_text("agentc: job %s: %s" % (self._id(), note)),
                          file=sys.stderr)  # fmt: skip
                    for member in open_ones:
                        member.interrupt()
        except (
            lease.LeaseError,
            environment.SoftwareEnvironmentError,
            prologue.NotGrantedError,
            OSError,
            StoppedError,
        ) as error:
            for claim in claims.values():
                if not _still_mine(claim):
                    raise LostClaimError(claim.name) from error
            redact = Redactor(self.secrets).clean_text
            said = redact(str(told(error, "the staged work of " + self.name, staging.path)))
            for member in members:
                if not member.settled:
                    member.fail(said)
            if self.session:
                staging.status("failed", said)
            if isinstance(error, StoppedError):
                raise
            print("agentc: job %s failed: %s" % (self._id(), said), file=sys.stderr)
            return 1
        finally:
            shared.leave()
        return tell_failures(members, staging if self.session else None)

    def _attempt(
        self,
        members: Sequence[Member],
        open_ones: Sequence[Member],
        staging: Staging,
        shared: SharedServers,
        redactor: Redactor,
        machine: Machine,
        claims: Mapping[str, Claim],
    ) -> None:
        """Run what is not settled yet, and publish the session when all is well."""
        with Supervisor(self.mark, redactor, Keeper(list(claims.values()))) as supervisor:
            leases: List[AnyLease] = []
            if open_ones:
                leases = self._provide(open_ones, staging, supervisor, shared)
                self._work(open_ones, leases, supervisor)
            if self.session and all(member.failure is None for member in members):
                lease.end_all(leases, supervisor)
                redactor.clean_files(staging.logs)
                manifest = self._session_manifest(leases, machine)
                publish(self.layout, staging, manifest, supervisor.redactor, claims[self.name])

    def _id(self) -> str:
        return str(self.session["id"] if self.session else self.jobs[0]["id"])

    def _wanted(self) -> Dict[str, List[str]]:
        """Every object that is claimed, with those that making it reads."""
        wanted = {
            object_name(job): [name for names in job["inputs"].values() for name in names]
            for job in self.jobs
        }
        return {self.name: [], **wanted}

    def _say(self, text: str) -> None:
        print("agentc: %s: %s" % (self._id(), text), file=sys.stderr)

    def _end_stragglers(self, staging: Staging) -> None:
        """End what an earlier, killed attempt left behind. We hold its locks: it is over."""
        previous = staging.previous_mark()
        if previous is not None:
            process.end_marked(previous)

    def _resolve_secrets(self, members: Sequence[Member]) -> None:
        for member in members:
            for spec in [member.job, *member.job["leases"]]:
                self.secrets += environment.resolve_secrets(spec.get("secrets") or {}).values()

    def _provide(
        self,
        members: Sequence[Member],
        staging: Staging,
        supervisor: Supervisor,
        shared: SharedServers,
    ) -> List[AnyLease]:
        """Software environments first, then servers; returns the servers, ready."""
        pythons = self._pythons(members, supervisor, shared)
        programs = [member.job["program"] for member in members]
        programs += [spec["program"] for member in members for spec in member.job["leases"]]
        code = environment.code_directory(self.layout, environment.packages_of(programs))
        leases: List[AnyLease] = []
        known: Dict[str, AnyLease] = {}
        names: Set[str] = set()
        for member in members:
            job = member.job
            member.leases = []
            path, complete = pythons[job["environment"]]
            member.python = environment.python_command(path, complete, self.layout.root, code)
            member.environment = {
                "name": job["environment"],
                "lock": complete["lock"],
                "python": complete["python"],
                "versions": complete["versions"],
            }
            cpus = (job.get("resources") or {}).get("cpus") or 1
            cpus = (job.get("placement") or {}).get("threads") or cpus
            network = bool((job.get("contract") or {}).get("network"))
            secrets = environment.resolve_secrets(lease.caller_secrets(job))
            member.variables = environment.job_variables(
                code, cpus, network, secrets, environment.programs_of(path, complete)
            )
            for spec in job["leases"]:
                model = self._served(job, spec)
                identity = json.dumps([spec, str(model)], sort_keys=True)
                if identity not in known and shared.serves(spec):
                    known[identity] = shared.lease(spec)
                    leases.append(known[identity])
                elif identity not in known:
                    own = environment.resolve_secrets(spec.get("secrets") or {})
                    python: List[str] = []
                    software = None
                    if spec.get("port") not in ("none", "inside"):
                        path, complete = pythons[spec["environment"]]
                        software = environment.programs_of(path, complete)
                        python = environment.python_command(path, complete, self.layout.root, code)
                    own_server = lease.Lease(
                        spec,
                        python=python,
                        variables=environment.job_variables(code, cpus, network, own, software),
                        model=model,
                        folder=staging.path,
                        logs=staging.logs,
                        name=lease.distinct_name(spec["role"], identity, names),
                    )
                    if python:
                        names.add(own_server.name)
                        own_server.software = {
                            "lock": complete["lock"],
                            "python": complete["python"],
                        }
                    known[identity] = own_server
                    leases.append(own_server)
                member.leases.append(known[identity])
        places = {staging, *(member.staging for member in members)}

        def report(message: str) -> None:
            for place in places:
                place.status("leases", message)

        # First those that may have to wait in a queue.
        others = [one for one in leases if isinstance(one, SharedLease)]
        if others:
            await_ready(others, supervisor, report)
        own_ones = [one for one in leases if isinstance(one, lease.Lease) and not one.inside]
        if own_ones:
            report("starting " + ", ".join(one.role for one in own_ones))
            lease.start_all(own_ones, supervisor)
        return leases

    def _pythons(
        self, members: Sequence[Member], supervisor: Supervisor, shared: SharedServers
    ) -> Dict[str, Tuple[Path, Dict[str, Any]]]:
        wanted = {member.job["environment"] for member in members}
        for member in members:
            own = [spec for spec in member.job["leases"] if not shared.serves(spec)]
            wanted |= {spec["environment"] for spec in own} - {None}

        def report(line: str) -> None:
            for member in members:
                member.staging.status("environment", "%s: %s" % (name, line))

        found = {}
        for name in sorted(wanted):
            lock, text = self.plan.lock(name)
            with supervisor.interruptible():
                found[name] = environment.ensure_environment(self.layout, lock, text, report)
        return found

    def _served(self, job: Mapping[str, Any], spec: Dict[str, Any]) -> Optional[Path]:
        """Directory of the checkpoint that a lease serves."""
        role = spec.get("input")
        objects = job["inputs"].get(role) if role else None
        return self.layout.data(objects[0]) if objects else None

    def _work(
        self, members: Sequence[Member], leases: Sequence[AnyLease], supervisor: Supervisor
    ) -> None:
        own: Sequence[AnyLease] = [] if self.session else leases
        for member in members:
            missing = member.blocked()
            if missing is not None:
                member.staging.status("waiting", "for %s" % missing)
        # What another node has published may take a while to show here.
        deadline = time.monotonic() + visible.patience(self.layout)

        def advance() -> bool:
            for member in members:
                if member.child is not None and member.child.status is not None:
                    if member.child.status != 0 and leases:
                        self._blame_server(leases, supervisor)
                    member.finish(supervisor, own)
                    if member.published and own:
                        return True
            if not all(member.settled for member in members):
                _raise_for_the_dead(leases)
            blocked = []
            for member in members:
                if member.due():
                    missing = member.blocked()
                    if missing is None:
                        member.start(supervisor)
                    else:
                        blocked.append((member, missing))
            if blocked and time.monotonic() < deadline:
                for _, missing in blocked:
                    visible.refresh(self.layout.object(missing).parent)
            elif not any(member.running or member.resting for member in members):
                # Nobody is left who could still publish what they wait for.
                late = any(member.out_of_time for member in members)
                for member, missing in blocked:
                    member.fail("its input %s is not in the store" % missing, late)
            return all(member.settled for member in members)

        supervisor.wait(advance)

    def _blame_server(self, leases: Sequence[AnyLease], supervisor: Supervisor) -> None:
        """A program may notice the death of its server before we do."""

        def look() -> bool:
            _raise_for_the_dead(leases, sure=True)
            return False

        silent = any(isinstance(one, SharedLease) and one.silent() for one in leases)
        supervisor.wait(look, timeout=BLAME_S if silent else 0.5, every=0.1)

    def _session_manifest(self, leases: Sequence[AnyLease], machine: Machine) -> Dict[str, Any]:
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


def _raise_for_the_dead(leases: Sequence[AnyLease], sure: bool = False) -> None:
    """LeaseError when a server is gone; SharedServerLostError when it was a shared one."""
    gone = lease.dead([one for one in leases if isinstance(one, lease.Lease)])
    if gone is not None:
        raise lease.LeaseError(lease.death_message(gone))
    for one in leases:
        message = one.death(sure) if isinstance(one, SharedLease) else None
        if message is not None:
            raise SharedServerLostError(message)


def _still_mine(claim: Claim) -> bool:
    """Whether it is; yes when the store cannot tell, for then it has a trouble of its own."""
    try:
        return claim.is_mine()
    except OSError:
        return True


def object_name(job: Mapping[str, Any]) -> str:
    """The object that a job makes, `<kind>/<key>`."""
    return "%s/%s" % (job["kind"], job["key"])
