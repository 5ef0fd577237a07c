"""Shared servers from the command line: `python -m agentc.runtime.serve up | keep | host ...`.

`up` is a local job of Snakemake's: it starts a shared server and waits until it is ready, also in a
cluster's queue. `keep` then holds the run's lease while that Snakemake lives. `host` is a copy of
the server itself (`shared_server_host.py`). docs/design/shared_servers.md has the whole.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from agentc.program.child import die_with_parent
from agentc.runtime.machine import allocation, process
from agentc.runtime.machine.device_lease import StartGate, one_at_a_time
from agentc.runtime.machine.hardware import DevicesError
from agentc.runtime.machine.output_filters import guarded_output
from agentc.runtime.servers import shared_server_launch
from agentc.runtime.servers.server_process import LeaseError
from agentc.runtime.servers.shared_server import SharedServer
from agentc.runtime.servers.shared_server_files import LeaseRenewal, ServerFolder
from agentc.runtime.software import variables
from agentc.runtime.store.layout import StoreLayout
from agentc.runtime.store.plan_file import PlanError, PlanFile

_WATCH_S = 0.3
_AWAY_S = 5.0
EXECUTORS = ("local", "slurm", "dryrun", "touch")
"""Executors of Snakemake under which a shared server can be started."""
STARTS = 2
"""How often `up` starts a copy that vanished before it was ready."""


class _StopRequestedError(Exception):
    """A signal asked this process to stop."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 failed, 128+n ended by signal n."""
    variables.restore()
    with guarded_output():
        return _main(argv)


def _main(argv: Sequence[str] | None) -> int:
    options = _parser().parse_args(argv)
    layout = StoreLayout(options.store)
    try:
        plan = PlanFile(Path(options.plan).absolute())
        server = plan.server(options.server)
        if options.what == "host":
            from agentc.runtime.servers.shared_server_host import Host

            across = options.address == "node"
            return Host(layout, plan, server, options.copy, across, options.gpus).run()
        folder = ServerFolder(layout, server)
        lease = Path(options.lease)
        if options.what == "keep":
            return _keep(layout, folder, _renewal(plan, server, lease), options)
        return _up(layout, plan, folder, _renewal(plan, server, lease), options)
    except (
        PlanError,
        LeaseError,
        shared_server_launch.ServerLaunchError,
        DevicesError,
        OSError,
    ) as error:
        print(f"agentc: {error}", file=sys.stderr)
        return 1
    except _StopRequestedError as stop:
        return 128 + int(stop.args[0])


def _renewal(plan: PlanFile, server: Mapping[str, object], path: Path) -> LeaseRenewal:
    """The lease of a run: it names what the run wants of the server's clients."""
    clients = server["clients"]
    assert isinstance(clients, list)
    jobs = [plan.job(str(name)) for name in clients]
    objects = [f"{job['kind']}/{job['key']}" for job in jobs]
    return LeaseRenewal(path, {"kind": "run", "waiting_for": objects})


def _up(
    layout: StoreLayout,
    plan: PlanFile,
    folder: ServerFolder,
    renewal: LeaseRenewal,
    options: argparse.Namespace,
) -> int:
    if options.executor not in EXECUTORS:
        raise shared_server_launch.ServerLaunchError(
            "the server {} has `scope: shared`, and agentc submits shared servers to SLURM only: "
            "by `executor: {}` it would start on this submit host. Set `scope: job`: each job, or "
            "session of jobs, then starts the server on its node".format(
                str(folder.server["id"]).split("/", 1)[-1], options.executor
            )
        )
    die_with_parent(signal.SIGTERM, options.run)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    resources = dict(word.split("=", 1) for word in options.resource)
    slurm = options.executor == "slurm"
    gpus = (allocation.number(resources.get("gpu")) or 0) if options.executor == "local" else None
    launch = shared_server_launch.describe_launch(
        plan.path,
        layout,
        options.server,
        shared_server_launch.sbatch_options(resources) if slurm else None,
        across=options.executor != "local",
        gpus=gpus,
    )
    lease = SharedServer(folder.server["lease"], folder, renewal)
    folder.prepare()
    renewal.begin()
    done = False
    try:
        with one_at_a_time(os.environ, gpus or 0) as gate:
            _start_until_ready(layout, folder, launch, lease, renewal, gate)
        _leave_to_keeper(folder, options)
        done = True
    finally:
        renewal.end(keep=done)
        if not done:
            shared_server_launch.end_unused(folder, layout)
    return 0


def _start_until_ready(
    layout: StoreLayout,
    folder: ServerFolder,
    launch: Mapping[str, object],
    lease: SharedServer,
    renewal: LeaseRenewal,
    gate: StartGate,
) -> None:
    reported = ""
    for number in range(1, STARTS + 1):
        _launch(layout, folder, launch, renewal, failed_too=number == 1)
        try:
            while not lease.ready(every=True):
                if all(copy.state().get("gpus") for copy in folder.copies()):
                    gate.open()
                if lease.waits_for() != reported:
                    reported = lease.waits_for()
                    print(reported, file=sys.stderr, flush=True)
                time.sleep(0.2)
            return
        except LeaseError as error:
            if number == STARTS or getattr(error, "final", False):
                raise
            print(f"agentc: {error}; once more", file=sys.stderr)


def _launch(
    layout: StoreLayout,
    folder: ServerFolder,
    launch: Mapping[str, object],
    renewal: LeaseRenewal,
    failed_too: bool,
) -> None:
    """Start the copies; a SLURM that does not answer is waited for."""
    reported = False
    while True:
        try:
            shared_server_launch.ensure(
                layout, folder, launch, renewal.now(), failed_too=failed_too
            )
            return
        except shared_server_launch.SlurmAwayError as error:
            if not reported:
                print(f"agentc: {error}\nwaiting until it answers", file=sys.stderr, flush=True)
            reported = True
            time.sleep(_AWAY_S)


def _leave_to_keeper(folder: ServerFolder, options: argparse.Namespace) -> None:
    """From here on the run's lease is renewed by a process that ends with Snakemake."""
    argv = [sys.executable, "-m", "agentc.runtime.serve", "keep", "--plan", options.plan]
    argv += ["--store", options.store, "--server", options.server, "--lease", options.lease]
    argv += ["--run", str(options.run)]
    shared_server_launch.detached(argv, folder.path / "keep.log")


def _keep(
    layout: StoreLayout, folder: ServerFolder, renewal: LeaseRenewal, options: argparse.Namespace
) -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    began = process.started(options.run)
    renewal.begin()
    try:
        while began and process.started(options.run) == began:
            time.sleep(_WATCH_S)
    finally:
        renewal.end()
        shared_server_launch.end_unused(folder, layout)
    return 0


def _stop(number: int, frame: FrameType | None) -> None:
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise _StopRequestedError(number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agentc.runtime.serve", description=__doc__)
    parser.add_argument("what", choices=("up", "keep", "host"))
    for name in ("plan", "store", "server"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--lease", help="file of the run's lease")
    parser.add_argument("--run", type=int, help="process that the run lives and dies with")
    parser.add_argument("--executor", default="local", help="of Snakemake")
    parser.add_argument("--resource", action="append", default=[], help="name=value")
    parser.add_argument("--address", choices=("loopback", "node"), default="loopback")
    parser.add_argument("--copy", type=int, default=1)
    parser.add_argument("--gpus", type=int, help="GPUs of this machine that a copy leases")
    return parser


if __name__ == "__main__":
    sys.exit(main())
