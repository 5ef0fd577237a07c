"""Unit: what one wrapper works on, a job alone or the members of a session on shared servers.

It locks the objects, provides software environments and servers, runs the programs, and publishes.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from agentc import __version__
from agentc.runtime import environment, lease, process
from agentc.runtime.hardware import Machine
from agentc.runtime.layout import StoreLayout
from agentc.runtime.member import Member
from agentc.runtime.plan_file import PlanFile
from agentc.runtime.publish import publish
from agentc.runtime.redact import Redactor
from agentc.runtime.staging import Staging
from agentc.runtime.supervise import StoppedError, Supervisor


class Unit:
    """What one wrapper works on: a job, or a session with its members."""

    def __init__(
        self,
        layout: StoreLayout,
        plan: PlanFile,
        jobs: List[Dict[str, Any]],
        session: Optional[Dict[str, Any]],
    ) -> None:
        self.layout = layout
        self.plan = plan
        self.jobs = jobs
        self.session = session
        self.objects = [object_name(job) for job in jobs]
        self.name = "session/" + session["key"] if session else self.objects[0]
        self.mark = process.mark(self.name, str(layout.root))
        self.started = 0.0
        self.secrets: List[str] = []

    def published(self) -> bool:
        """Whether there is nothing to do."""
        return all(map(self.layout.is_published, {self.name, *self.objects}))

    def run(self) -> int:
        """Do the work under the locks of all objects; returns the exit status."""
        locks = self._lock_all()
        if locks is None:
            return 0
        self.started = time.time()
        machine = Machine()
        members = [
            Member(self.layout, job, self.started, machine)
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
        leases: List[lease.Lease] = []
        try:
            self._resolve_secrets(members)
            redactor = Redactor(self.secrets)
            for member in members:
                member.redactor = redactor
            with Supervisor(self.mark, redactor) as supervisor:
                if members:
                    leases = self._provide(members, staging, supervisor)
                    self._work(members, leases, supervisor)
                failed = [member for member in members if member.failure is not None]
                if self.session and not failed:
                    lease.end_all(leases, supervisor)
                    redactor.clean_files(staging.logs)
                    publish(
                        self.layout,
                        staging,
                        self._session_manifest(leases, machine),
                        supervisor.redactor,
                    )
        except (
            lease.LeaseError,
            environment.SoftwareEnvironmentError,
            OSError,
            StoppedError,
        ) as error:
            redact = Redactor(self.secrets).clean_text
            for member in members:
                if not member.settled:
                    member.fail(redact(str(error)))
            if self.session:
                staging.status("failed", redact(str(error)))
            if isinstance(error, StoppedError):
                raise
            print(redact("agentc: job %s failed: %s" % (self._id(), error)), file=sys.stderr)
            return 1
        for member in failed:
            print(member.describe_failure(), file=sys.stderr)
        if failed and self.session:
            staging.status("failed", "%d of its jobs failed" % len(failed))
        return 1 if failed else 0

    def _id(self) -> str:
        return str(self.session["id"] if self.session else self.jobs[0]["id"])

    def _lock_all(self) -> Optional[List[int]]:
        """Hold the locks until this process ends; None when others published it meanwhile."""
        (self.layout.root / "locks").mkdir(parents=True, exist_ok=True)
        held: List[int] = []
        # One order for everybody, so that two sessions with common members cannot block each
        # other for ever.
        for name in sorted({self.name, *self.objects}):
            path = self.layout.lock(name)
            descriptor = os.open(str(path), os.O_RDWR | os.O_CREAT, 0o666)
            waited = False
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if not waited:
                        note = "agentc: %s: another run works on %s; waiting" % (self._id(), name)
                        print(note, file=sys.stderr)
                        waited = True
                    time.sleep(0.1)
            held.append(descriptor)
        if self.published():
            for descriptor in held:
                os.close(descriptor)
            return None
        return held

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
        self, members: Sequence[Member], staging: Staging, supervisor: Supervisor
    ) -> List[lease.Lease]:
        """Software environments first, then servers; returns the servers, ready."""
        pythons = self._pythons(members, supervisor)
        programs = [member.job["program"] for member in members]
        programs += [spec["program"] for member in members for spec in member.job["leases"]]
        code = environment.code_directory(self.layout, environment.packages_of(programs))
        leases: List[lease.Lease] = []
        known: Dict[str, lease.Lease] = {}
        for member in members:
            job = member.job
            path, complete = pythons[job["environment"]]
            member.python = path / "bin" / "python"
            member.environment = {
                "name": job["environment"],
                "lock": complete["lock"],
                "python": complete["python"],
                "versions": complete["versions"],
            }
            cpus = (job.get("resources") or {}).get("cpus") or 1
            cpus = (job.get("placement") or {}).get("threads") or cpus
            network = bool((job.get("contract") or {}).get("network"))
            remote = [spec for spec in job["leases"] if spec.get("port") == "none"]
            secrets = environment.resolve_secrets(job.get("secrets") or {})
            for spec in remote:
                secrets.update(environment.resolve_secrets(spec.get("secrets") or {}))
            member.variables = environment.job_variables(code, cpus, network, secrets)
            for spec in job["leases"]:
                model = self._served(job, spec)
                identity = json.dumps([spec, str(model)], sort_keys=True)
                if identity not in known:
                    own = environment.resolve_secrets(spec.get("secrets") or {})
                    python = None
                    if spec.get("port") != "none":
                        python = pythons[spec["environment"]][0] / "bin" / "python"
                    known[identity] = lease.Lease(
                        spec,
                        python=python,
                        variables=environment.job_variables(code, cpus, network, own),
                        model=model,
                        folder=staging.path,
                        logs=staging.logs,
                    )
                    if python is not None:
                        complete = pythons[spec["environment"]][1]
                        known[identity].software = {
                            "lock": complete["lock"],
                            "python": complete["python"],
                        }
                    leases.append(known[identity])
                member.leases.append(known[identity])
        if leases:
            for place in {staging, *(member.staging for member in members)}:
                place.status("leases", "starting " + ", ".join(one.role for one in leases))
            lease.start_all(leases, supervisor)
        return leases

    def _pythons(
        self, members: Sequence[Member], supervisor: Supervisor
    ) -> Dict[str, Tuple[Path, Dict[str, Any]]]:
        wanted = {member.job["environment"] for member in members}
        for member in members:
            wanted |= {spec["environment"] for spec in member.job["leases"]} - {None}

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
        self, members: Sequence[Member], leases: Sequence[lease.Lease], supervisor: Supervisor
    ) -> None:
        own = [] if self.session else leases

        def advance() -> bool:
            for member in members:
                if member.child is not None and member.child.status is not None:
                    if member.child.status != 0 and leases:
                        self._blame_server(leases, supervisor)
                    member.finish(supervisor, own)
                    if member.published and own:
                        return True
            gone = lease.dead(leases)
            if gone is not None and not all(member.settled for member in members):
                raise lease.LeaseError(lease.death_message(gone))
            blocked = []
            for member in members:
                if member.due():
                    missing = member.blocked()
                    if missing is None:
                        member.start(supervisor)
                    else:
                        blocked.append((member, missing))
            if not any(member.running or member.resting for member in members):
                # Nobody is left who could still publish what they wait for.
                for member, missing in blocked:
                    member.fail("its input %s is not in the store" % missing)
            return all(member.settled for member in members)

        supervisor.wait(advance)

    def _blame_server(self, leases: Sequence[lease.Lease], supervisor: Supervisor) -> None:
        """A program may notice the death of its server before we do."""
        if supervisor.wait(lambda: lease.dead(leases) is not None, timeout=0.5, every=0.05):
            gone = lease.dead(leases)
            assert gone is not None
            raise lease.LeaseError(lease.death_message(gone))

    def _session_manifest(self, leases: Sequence[lease.Lease], machine: Machine) -> Dict[str, Any]:
        assert self.session is not None
        ended = time.time()
        return {
            "manifest": 1,
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


def object_name(job: Mapping[str, Any]) -> str:
    """The object that a job makes, `<kind>/<key>`."""
    return "%s/%s" % (job["kind"], job["key"])
