"""JobRun: one job inside a wrapper, from its staging directory to its published object.

A wrapper runs one, or all members of a session next to each other on shared servers.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from agentc import __version__
from agentc.program.import_report import FOLDER_VARIABLE, read_reports
from agentc.runtime.contracts.artifacts import ContractError, check_artifact
from agentc.runtime.machine import allocation
from agentc.runtime.machine.allocation import stopped_early
from agentc.runtime.machine.hardware import MachineProbe
from agentc.runtime.machine.output_filters import Redactor
from agentc.runtime.machine.supervise import Child, Supervisor
from agentc.runtime.servers.job_leases import (
    InsideLease,
    caller_variables,
    fill_placeholders,
    needed_roles,
    planned_leases,
)
from agentc.runtime.servers.server_group import ServerCopies
from agentc.runtime.servers.server_group import end_all as end_servers
from agentc.runtime.servers.server_log import last_lines
from agentc.runtime.servers.server_process import ServerProcess
from agentc.runtime.servers.shared_server import SharedServer
from agentc.runtime.software.variables import site_variables
from agentc.runtime.store.file_system import explain_start, full_disk_hint, missing_module_hint
from agentc.runtime.store.layout import StoreLayout, keep_private
from agentc.runtime.store.object_lock import ObjectLock
from agentc.runtime.store.staging import Staging, publish

JobLease = ServerProcess | ServerCopies | SharedServer | InsideLease

TRY_AGAIN = 75
"""Exit code of a program, or of a wrapper, that asks for another attempt (EX_TEMPFAIL)."""
RETRY_DELAYS_S = (1.0, 5.0)
"""Pauses before the second and the third attempt."""


class JobRun:
    """One job of this wrapper. `failure` is set when it has failed for good, or for now where it is
    `out_of_time`."""

    def __init__(
        self,
        layout: StoreLayout,
        job: Mapping[str, Any],
        started: float,
        machine: MachineProbe,
        claim: ObjectLock,
    ) -> None:
        self.layout = layout
        self._claim = claim
        self._machine = machine
        self.job = job
        self.id: str = job["id"]
        self.name = f"{job['kind']}/{job['key']}"
        self.staging = Staging(layout, self.name)
        self.python: list[str] = []
        self.gpus = 0
        """How many its program has to see on this node."""
        self.software: dict[str, Any] = {}
        self.variables: dict[str, str] = {}
        self.planned = planned_leases(job)
        self.leases: list[JobLease] = []
        self.child: Child | None = None
        self.failure: str | None = None
        self.out_of_time = False
        self.stop_by: float | None = None
        self.published = False
        self.redactor = Redactor()
        self._started = started
        self._program_started = 0.0
        self._tries = 0
        self._kills = 0
        self._not_before = 0.0
        self._cpu_s = 0.0
        self._max_rss_mb = 0.0

    @property
    def settled(self) -> bool:
        """Published or failed for good."""
        return self.published or self.failure is not None

    @property
    def running(self) -> bool:
        """Whether its program is at work."""
        return self.child is not None

    def blocked(self) -> str | None:
        """The first input that is not published, or None."""
        for objects in self.job["inputs"].values():
            for name in objects:
                if not self.layout.is_published(name):
                    return str(name)
        return None

    @property
    def resting(self) -> bool:
        """Whether it waits for its next attempt."""
        return not self.settled and not self.running and time.monotonic() < self._not_before

    def due(self) -> bool:
        """Whether the program may be started, as far as this job is concerned."""
        return not self.settled and not self.running and not self.resting

    def start(self, supervisor: Supervisor) -> None:
        """Start the program."""
        if self._tries and not self.job.get("resume"):
            self.staging.empty_data()
        if self.redactor.secrets:
            keep_private(self.layout, self.staging.data, self.staging.work)
        self.staging.begin_attempt(self._job_file())
        self._tries += 1
        argv = [*self.python, *fill_placeholders(self.job["program"], {"{job}": self._job_path()})]
        if not any("{job}" in word for word in self.job["program"]):
            argv.append(self._job_path())
        self._program_started = time.time()
        self._kills = allocation.memory_kills()
        try:
            self.child = supervisor.start(
                self.id,
                argv,
                cwd=self.staging.path,
                variables={
                    **self.variables,
                    FOLDER_VARIABLE: str(self.staging.imported / "program"),
                },
                log=self.staging.log,
            )
        except OSError as error:
            self.fail(f"its program cannot be started: {explain_start(error) or error}")
            return
        self.staging.status("running")

    def interrupt(self) -> None:
        """The supervisor of its program has ended, and everything with it: to be started again."""
        if self.child is not None:
            self.staging.history.end("a server that it shares with others was lost")
        self.child = None
        self._not_before = 0.0

    def finish(
        self, supervisor: Supervisor, leases_to_end: Sequence[ServerProcess | SharedServer]
    ) -> None:
        """The program has ended: publish, try again later, or fail. Servers of this job alone
        are ended before its logs are sealed."""
        assert self.child is not None
        child, self.child = self.child, None
        supervisor.end([child], grace=1.0)
        self._cpu_s += child.cpu_s
        self._max_rss_mb = max(self._max_rss_mb, child.max_rss_mb)
        stopped = stopped_early(self.staging.progress())
        if stopped is not None:
            # Whatever its status: launchers of several processes have one of their own.
            self.fail(stopped + "\nRun again to continue from there", out_of_time=True)
            return
        if child.status == TRY_AGAIN and self._tries <= len(RETRY_DELAYS_S):
            delay = RETRY_DELAYS_S[self._tries - 1]
            self._not_before = time.monotonic() + delay
            because = "the program asked for another attempt (exit 75)"
            self.purge()
            self.staging.history.end(because)
            self.staging.status("running", because)
            return
        if child.status != 0:
            message = f"its program {exit_description(child.status)}"
            log = last_lines(self.staging.log, 20, self.staging.log_begins)
            full = full_disk_hint(log, self.staging.path)
            lacking = missing_module_hint(log, str(self.job["software"]))
            hints = [message, allocation.out_of_memory(self._kills), full, lacking]
            self.fail("\n".join(filter(None, hints)))
            return
        ended = time.time()
        self.staging.status("checking")
        try:
            self._check()
        except ContractError as error:
            self.fail(str(error))
            return
        leaking = self.redactor.find(self.staging.data)
        if leaking is not None:
            self.fail(
                f"its program wrote the value of a secret into data/{leaking}; nothing is "
                "published, and "
                "what held the value is removed from its staged work. If a server sent it back, "
                "look at the address (`agentc check` lists where each secret goes) and replace "
                "the key if others may have seen it. Run again: the rest of the work is kept"
            )
            return
        end_servers(leases_to_end, supervisor)
        self._clean()
        publish(self.layout, self.staging, self._manifest(ended), supervisor.redactor, self._claim)
        self.published = True

    def fail(self, message: str, out_of_time: bool = False) -> None:
        """Give the job up, or leave the rest of it to another submission; its staging directory
        stays."""
        self.failure = self.redactor.clean_text(message)
        self.purge()
        self.out_of_time = out_of_time
        if self._tries:
            self.staging.history.end(self.failure)
        self._clean()
        self.staging.status("failed", self.failure, out_of_time)

    def purge(self) -> None:
        """Remove what an attempt wrote of a secret: of this one, or of one that was killed."""
        for folder in (self.staging.data, self.staging.work):
            self.redactor.purge(folder)

    def _clean(self) -> None:
        """Programs may write to logs/ themselves; log.txt has been cleaned as it grew."""
        self.redactor.clean_files(self.staging.logs)
        for file in (self.staging.facts_file, self.staging.progress_file):
            if self.redactor.secrets and file.exists():
                file.write_bytes(self.redactor.clean(file.read_bytes()))

    def describe_failure(self) -> str:
        """The failure with the last lines of the log, for people."""
        if self.out_of_time:
            return f"agentc: job {self.id} is not done: {self.failure}"
        tail = last_lines(self.staging.log, 20, self.staging.log_begins)
        text = f"agentc: job {self.id} failed: {self.failure}"
        if tail:
            text += "\nlast lines of {}:\n{}".format(
                self.staging.log,
                "\n".join("  | " + line for line in tail.splitlines()),
            )
        return text

    def _check(self) -> None:
        check_artifact(
            self.job["produces"],
            self.staging.data,
            self.job.get("contract") or {},
            self._inputs(),
            self.staging.facts(),
        )

    def _inputs(self) -> dict[str, list[str]]:
        return {
            role: [str(self.layout.data(name)) for name in objects]
            for role, objects in self.job["inputs"].items()
        }

    def _job_path(self) -> str:
        return str(self.staging.job_file)

    def _job_file(self) -> dict[str, Any]:
        staging = self.staging
        return {
            "id": self.id,
            "key": self.job["key"],
            "kind": self.job["kind"],
            "config": self.job["config"],
            "placement": self.job.get("placement") or {},
            "processes": self.job.get("processes", 1),
            "resources": self.job.get("resources") or {},
            "gpus": self.gpus,
            "contract": self.job.get("contract") or {},
            "inputs": self._inputs(),
            "input_objects": self.job["inputs"],
            "out": str(staging.data),
            "work": str(staging.work),
            "logs": str(staging.logs),
            "facts": str(staging.facts_file),
            "progress": str(staging.progress_file),
            "leases": {
                lease.role: self._endpoint(lease)
                for lease in self.leases
                if lease.role not in needed_roles(self.job)
            },
            **({} if self.stop_by is None else {"stop_by": self.stop_by}),
        }

    def _endpoint(self, lease: JobLease) -> dict[str, Any]:
        secrets = caller_variables(self.job).get(lease.role)
        return {**lease.endpoint, **({"secrets": secrets} if secrets else {})}

    def _site_variables(self) -> dict[str, str]:
        """Variables that the site gives its jobs: placement, which enters no key."""
        return {
            name: self.redactor.clean_text(value)
            for name, value in site_variables(os.environ).items()
        }

    def _manifest(self, ended: float) -> dict[str, Any]:
        job = self.job
        past = self.staging.history.past()
        given = self._site_variables()
        return {
            "id": self.id,
            "kind": job["kind"],
            "key": job["key"],
            "type": job["produces"],
            "backend": job["backend"],
            "version": job["version"],
            "inputs": job["inputs"],
            "identity": job.get("identity") or {},
            "config": job["config"],
            "agentc": __version__,
            "software": {**self.software, **read_reports(self.staging.imported / "program")},
            "leases": [lease.manifest() for lease in self.leases],
            "facts": self.staging.facts(),
            "hardware": self._machine.describe(),
            **({"variables": given} if given else {}),
            "started": self._started,
            "wall_s": round(ended - self._started, 3),
            "program_s": round(ended - self._program_started, 3),
            "cpu_s": round(self._cpu_s, 3),
            "max_rss_mb": round(self._max_rss_mb, 1),
            "attempts": self.staging.attempts,
            **({"earlier_attempts": past} if past else {}),
            "origin": job.get("origin") or {},
        }


def report_failures(members: Sequence[JobRun], session: Staging | None) -> int:
    """Say what failed, in the session's status too; returns the wrapper's exit status."""
    failed = [member for member in members if member.failure is not None]
    for member in failed:
        print(member.describe_failure(), file=sys.stderr)
    if not failed:
        return 0
    out_of_time = all(member.out_of_time for member in failed)
    if session is not None:
        outcome = "stopped before the time limit" if out_of_time else "failed"
        session.status("failed", f"{len(failed)} of its jobs {outcome}", out_of_time)
    return TRY_AGAIN if out_of_time else 1


def exit_description(status: int | None) -> str:
    """An exit status in words."""
    if status is not None and status < 0:
        note = " (out of memory?)" if status == -9 else ""
        return f"was killed by signal {-status}{note}"
    if status == TRY_AGAIN:
        return f"asked for another attempt {len(RETRY_DELAYS_S) + 1} times (exit 75)"
    return f"exited with {status}"
