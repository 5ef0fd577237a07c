"""Which software stacks a plan, or what is installed, needs, and what each lacks here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentc.backend_api import BackendTable, Tracker
from agentc.diagnostics.sink import Sink
from agentc.plan.job import Plan, SoftwareLock
from agentc.runtime.software.container import ContainerError, find_engine
from agentc.runtime.software.interpreter import InterpreterMissingError, find_interpreter
from agentc.runtime.software.job_software import read_complete
from agentc.runtime.software.lock_text import LockTextError, lock_digest, read_lock_text
from agentc.runtime.store.layout import StoreLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """A software stack that somebody needs. `users` are stages or backends, sorted."""

    name: str
    lock: str
    users: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """The stack's identity."""
        return lock_digest(self.lock)

    def directory(self, layout: StoreLayout) -> Path:
        """Where it is, or will be."""
        return layout.software_stack(self.sha256)

    def ready(self, layout: StoreLayout) -> bool:
        """Whether it can be used as it is."""
        return read_complete(self.directory(layout)) is not None


def needed_by_plan(plan: Plan, jobs: Collection[str] | None = None) -> tuple[Needed, ...]:
    """The stacks of these jobs (ids; None: of all), with the stages that use them."""
    users: dict[str, set[str]] = {}
    for job in plan.jobs:
        if jobs is None or job.id in jobs:
            names = {job.software, *(lease.software for lease in job.leases)}
            for name in names - {None}:
                users.setdefault(str(name), set()).add(job.stage)
    return _listed(plan.software, users)


def needed_by_backends(table: BackendTable) -> tuple[Needed, ...]:
    """The stacks of every installed backend, each lock once."""
    locks: dict[str, SoftwareLock] = {}
    users: dict[str, set[str]] = {}
    for backend in table:
        software = backend.software
        same = [name for name, lock in locks.items() if lock.lock == software.text]
        name = same[0] if same else software.name
        if not same and name in locks:
            name += "-" + SoftwareLock(name=name, lock=software.text).sha256[:8]
        locks[name] = SoftwareLock(name=name, lock=software.text)
        users.setdefault(name, set()).add(backend.id)
    return _listed(locks, users)


def needed_by_tracker(tracker: Tracker) -> Needed:
    """That of a tracker's program, which no job shares."""
    software = tracker.software
    return Needed(name=software.name, lock=software.text, users=(f"track.{tracker.id}",))


def report_lacking(
    needed: Iterable[Needed], layout: StoreLayout, sink: Sink, *, severity: str = "error"
) -> None:
    """AGC670 for each stack that is to be built and whose Python this machine lacks, AGC672
    for a container without an engine: so that nothing is begun that would end there."""
    for one in needed:
        if one.ready(layout):
            continue
        report = sink.error if severity == "error" else sink.warning
        users = ", ".join(f"`{user}`" for user in one.users[:5])
        users += f" and {len(one.users) - 5} more" if len(one.users) > 5 else ""
        try:
            lock = read_lock_text(one.lock)
            if lock.container is None:
                find_interpreter(lock.python)
            else:
                find_engine()
        except ContainerError as error:
            what, _, remedy = str(error).partition("\nhelp: ")
            report(
                "AGC672",
                f"the software stack `{one.name}` cannot be used: {what}",
                notes=(f"needed by {users}",),
                fix=remedy,
            )
        except InterpreterMissingError as error:
            report(
                "AGC670",
                f"the software stack `{one.name}` cannot be built: {error.args[0]}",
                notes=(*error.looked, f"needed by {users}"),
                fix="; ".join(error.remedy),
            )
        except LockTextError:
            continue  # compiling has said so


def _listed(locks: Mapping[str, SoftwareLock], users: Mapping[str, set[str]]) -> tuple[Needed, ...]:
    return tuple(
        Needed(name=name, lock=locks[name].lock, users=tuple(sorted(users[name])))
        for name in sorted(users)
    )
