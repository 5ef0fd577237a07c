"""The GPUs of one unit of work: leased on this machine, or given by a cluster's queue, and who of
the unit's processes sees which. docs/design/devices.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentc.lease_roles import is_model_server
from agentc.runtime.machine import allocation, hardware
from agentc.runtime.machine.hardware import (
    DeviceTaker,
    TooFewDevicesError,
    divide,
    wanted_devices,
)
from agentc.runtime.servers.job_leases import shared_takers
from agentc.runtime.store.plan_file import PlanFile

if TYPE_CHECKING:
    from agentc.runtime.machine.device_lease import DeviceLease

SUBMITTED = "submitted"
"""Among what a job asked for: a queue brought it here, and gave it what it has."""
Variables = Mapping[str, str]
_UNCLEAR = (
    "the queue does not say which of the %d GPUs of this node are the %d of this job, and two "
    "servers of the job would take the same one. CUDA_VISIBLE_DEVICES is not set: set it in the "
    "queue's prologue, or request all GPUs of the node"
)


def node_server_gpus(
    jobs: Sequence[Mapping[str, Any]], plan: PlanFile, asked: Mapping[str, str]
) -> dict[str, int]:
    """GPUs of each server that the jobs of this machine share, by its id, where the jobs have some:
    it outlives the job that starts it, so the job's own servers and programs never see them."""
    found: dict[str, int] = {}
    count = allocation.number(asked.get("gpu")) or 0
    for name, taker in (each for job in jobs for each in shared_takers(job)):
        if plan.server(name)["scope"] == "node":
            whole = count if is_model_server(taker.role) else 0
            found[name] = min(count, taker.devices or whole)
    if SUBMITTED in asked:
        return {name: number for name, number in found.items() if number}
    return found


def unleased_request(asked: Mapping[str, str], environ: Variables) -> dict[str, str]:
    """What the prologue has to look at: GPUs of this machine are counted when they are leased."""
    found = {name: each for name, each in asked.items() if name != SUBMITTED}
    ours = "SLURM_JOB_ID" not in environ or hardware.GPUS_VARIABLE in environ
    if SUBMITTED not in asked and ours and hardware.may_have_gpus(environ):
        found.pop("gpu", None)
    return found


class UnitDevices:
    """`asked` is what Snakemake says that the unit asks for (`prologue.read_asked`); of its
    GPUs `of_node` are those of servers with `scope: node`, by their ids: they outlive the unit."""

    def __init__(
        self,
        asked: Mapping[str, str],
        environ: Variables,
        what: str,
        of_node: Mapping[str, int] | None = None,
    ) -> None:
        """Raises DevicesError where the machine will never have so many."""
        elsewhere = sum((of_node or {}).values())
        self._names: list[str] | None = None
        self._requested = 0
        self._numbered = False
        self._unclear = 0
        self._set_apart: dict[str, Variables] = {}
        self._lease: DeviceLease | None = None
        self.submitted = SUBMITTED in asked
        several = allocation.number(asked.get("nodes")) or 1
        count = allocation.number(asked.get("gpu")) or 0
        if self.submitted:
            self._requested = _granted(allocation.gpus_on_node(asked, several), environ)
            if count and several == 1:
                self._take_granted(environ, of_node or {})
            return
        if not count:
            if hardware.may_have_gpus(environ):
                self._names = []
            return
        there = hardware.machine_devices(environ)
        if not hardware.gpus_hidden(environ):
            self._requested = count - elsewhere
        if there:
            self._numbered = True
            self._names = []
            # Imported late: most jobs ask for none, and every one would pay for it.
            from agentc.runtime.machine.device_lease import DeviceLease, assert_enough, lock_folder

            if environ.get(allocation.MODE_VARIABLE) == "warn":
                count = min(count, len(there))
            # What a server of the node takes has to be there as well.
            assert_enough(count, there)
            if count > elsewhere:
                self._lease = DeviceLease(there, count - elsewhere, what, lock_folder(environ))
        elif environ.get(hardware.GPUS_VARIABLE):
            self._names = []

    @property
    def names(self) -> list[str]:
        """What the unit has, for its manifest."""
        return list(self._names or ())

    def acquire(
        self, wait: Callable[[Callable[[], bool]], None], report: Callable[[str], None]
    ) -> None:
        """Take the lease, with `wait` until there are enough free ones. Raises DevicesError."""
        lease = self._lease
        if lease is None:
            return
        if not lease.try_acquire():
            wanted = f"{lease.count} GPU{'' if lease.count == 1 else 's'}"
            told = [""]

            def taken() -> bool:
                held = "; ".join(lease.holders())
                if held != told[0]:
                    told[0] = held
                    report(f"for {wanted}{(f' ({held})' if held else '')}")
                return lease.try_acquire()

            report("for " + wanted)
            wait(taken)
        self._names = [device.name for device in lease.held]

    def release(self) -> None:
        """Give the lease back: whatever used it has ended."""
        if self._lease is not None:
            self._lease.release()
            self._names = []

    def divide(self, servers: Mapping[str, DeviceTaker]) -> DeviceViews:
        """What each of the unit's own servers, and its programs, see. Raises DevicesError."""
        if self._unclear and _takers(servers, self._requested) + len(self._set_apart) > 1:
            raise hardware.DevicesError(_UNCLEAR % (self._unclear, self._requested))
        if not self._names and not self._set_apart:
            shown = {} if self._names is None else self._visibility(())
            # Which they are is not known here: a queue gave them, on several nodes say.
            taken = sum(
                count * servers[name].number_of_copies(0)
                for name, count in wanted_devices(servers, self._requested).items()
            )
            return DeviceViews(
                shown,
                {name: [shown] * each.number_of_copies(0) for name, each in servers.items()},
                max(0, self._requested - taken),
            )
        names = self._names or ()
        try:
            given, left = divide(names, servers)
        except TooFewDevicesError as error:
            # The queue gave less, which the prologue accepts where the user says so.
            takers = _takers(servers, len(names)) + len(self._set_apart)
            if self.submitted and takers == 1:
                return DeviceViews({}, {})
            others = ", beside those of servers with `scope: node`" if self._set_apart else ""
            raise hardware.DevicesError(str(error) + others) from None
        return DeviceViews(
            self._visibility(left),
            {name: list(map(self._visibility, own)) for name, own in given.items()},
            len(left),
        )

    def of_node(self, server: str) -> Variables | None:
        """Variables of a server with `scope: node` that the unit starts on GPUs of its queue; None
        where it leases GPUs of this machine by itself, or sees whatever is there."""
        return self._set_apart.get(server)

    def whole(self) -> Variables:
        """Variables of a process that has all of them."""
        return {} if self._names is None else self._visibility(self._names)

    def _take_granted(self, environ: Variables, of_node: Mapping[str, int]) -> None:
        """The GPUs that a queue gave: those that it lists, else those of the node where it shows as
        many as were requested. Those of servers of the node are set apart."""
        names = hardware.visible_devices(environ)
        if names is None:
            there = hardware.machine_devices(environ)
            if len(there) != self._requested:
                self._unclear = len(there)
                self._set_apart = {name: {} for name in of_node} if there else {}
                return
            names, self._numbered = [device.name for device in there], True
        if not names:
            return
        for name, count in of_node.items():
            if len(names) < count:
                raise hardware.DevicesError(
                    "the queue gave %d GPUs, and the server %s takes %d beside others of this job"
                    % (self._requested, name, count)
                )
            names, taken = names[: len(names) - count], names[len(names) - count :]
            self._set_apart[name] = self._visibility(taken)
        self._requested -= sum(of_node.values())
        self._names = names

    def _visibility(self, names: Sequence[str]) -> Variables:
        return hardware.visibility(names, self._numbered)


class DeviceViews:
    """Variables of the programs and of each copy of a server; none where they see whatever is
    there. `gpus` is how many the programs have to see on this node."""

    def __init__(
        self, program: Variables, servers: Mapping[str, Sequence[Variables]], gpus: int = 0
    ) -> None:
        self.program = program
        self.gpus = gpus
        self._servers = servers

    def server(self, name: str) -> Sequence[Variables]:
        """Variables of each copy of one server."""
        return self._servers.get(name, ({},))


def _granted(count: int, environ: Variables) -> int:
    """GPUs that a queue gave of those requested: fewer only where the prologue accepts that."""
    if environ.get(allocation.MODE_VARIABLE) != "warn":
        return count
    seen = allocation.visible_gpus(environ, list)
    return count if seen is None else min(count, int(seen[0]))


def _takers(servers: Mapping[str, DeviceTaker], there: int) -> int:
    """Processes that take GPUs: copies of servers."""
    wanted = wanted_devices(servers, there)
    return sum(servers[name].number_of_copies(0) for name, count in wanted.items() if count)
