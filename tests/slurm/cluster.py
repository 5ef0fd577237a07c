"""A real SLURM of several nodes on this machine, for tests: munge, slurmctld, a slurmd for each
node, and slurmdbd where MariaDB is installed.

    python -m tests.slurm.cluster run -- COMMAND ...     a cluster for as long as the command runs
    python -m tests.slurm.cluster up | down              by hand

One at a time: SLURM's programs, and what Snakemake's plugin starts on a node, look for the
configuration in /etc/slurm. conftest.py has the fixtures.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.slurm.configuration import (
    CONTROL_GROUPS,
    Ports,
    can_hold_to_memory,
    cgroup_conf,
    free_ports,
    gres_conf,
    make_devices,
    slurm_conf,
    slurmdbd_conf,
)
from tests.slurm.daemons import DaemonError, Daemons, end_recorded, step_processes
from tests.support.patience import PATIENCE_S

PACKAGES = "slurmctld slurmd slurm-client munge slurmdbd mariadb-server"
ROOT = Path(tempfile.gettempdir()) / "agentc-slurm"
LOCK = Path(tempfile.gettempdir()) / "agentc-slurm.lock"
SYSTEM = Path("/etc/slurm")
_NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol")
_FOR_ACCOUNTING = ("slurmdbd", "mariadbd", "mysql_install_db", "mysqladmin", "mysql", "sacctmgr")


class ClusterUnavailableError(Exception):
    """This machine cannot have a cluster of its own; the message says why."""


@dataclass(frozen=True, slots=True)
class Queued:
    """A job in SLURM's queue."""

    id: int
    name: str
    state: str
    nodes: str
    comment: str


class Cluster:
    """A running cluster."""

    def __init__(self, root: Path, nodes: Sequence[str], daemons: Daemons) -> None:
        self.root = root
        self.nodes = tuple(nodes)
        self.daemons = daemons
        self.accounting = False
        self.holds_to_memory = can_hold_to_memory()
        self.seconds = 0.0

    def command(self, *words: str) -> str:
        """What one of SLURM's commands prints; it must succeed."""
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
        if done.returncode != 0:
            raise DaemonError(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def queue(self) -> list[Queued]:
        """Jobs that wait, run, or are being ended."""
        return self._jobs()

    def history(self) -> list[Queued]:
        """Those and the ones that ended within the last minutes, by number."""
        return sorted(self._jobs("--states=all"), key=lambda job: job.id)

    def _jobs(self, *words: str) -> list[Queued]:
        lines = self.command("squeue", "-h", *words, "-o", "%i|%j|%T|%N|%k").splitlines()
        rows = [line.split("|", 4) for line in lines]
        return [Queued(int(row[0]), *row[1:]) for row in rows]

    def states(self) -> dict[str, str]:
        """The state of each node, as `sinfo` says it."""
        text = self.command("sinfo", "-h", "-N", "-p", "main", "-o", "%N %T")
        return dict(line.split() for line in text.splitlines())

    def start_node(self, name: str, within: Sequence[str] = ()) -> None:
        """Start (again) the daemon of a node; `within` is a command that runs another one, as
        nsenter does."""
        (self.root / "spool" / name).mkdir(parents=True, exist_ok=True)
        self.daemons.start(f"slurmd.{name}", [*within, "slurmd", "-D", "-N", name])

    def start_controller(self) -> None:
        """Start (again) the controller and wait until it answers. Nodes may be at work by then:
        whoever waited for it submits at once."""
        self.daemons.start("slurmctld", ["slurmctld", "-D"])
        self.daemons.wait_for("slurmctld", lambda: _succeeds("sinfo", "-h"), PATIENCE_S)

    def start_accounting(self) -> None:
        """Start (again) the accounting daemon and wait until it answers."""
        socket = {"MYSQL_UNIX_PORT": str(self.root / "database.socket")}
        self.daemons.start("slurmdbd", ["slurmdbd", "-D"], socket)
        asked = ("sacctmgr", "-n", "list", "cluster")
        self.daemons.wait_for("slurmdbd", lambda: _succeeds(*asked), PATIENCE_S)

    def kill_node(self, name: str) -> None:
        """kill -9 of a node's daemon; the steps of its jobs go on, as on a real node."""
        self.daemons.stop(f"slurmd.{name}", signal.SIGKILL)

    def lose_node(self, name: str) -> None:
        """The node is gone with all that runs on it, as after a power cut."""
        jobs = [job.id for job in self.queue() if job.nodes == name]
        self.kill_node(name)
        for pid in {pid for job in jobs for pid in step_processes(job)}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait_idle(self, timeout: float = PATIENCE_S) -> None:
        """Wait until every node is idle. Raises DaemonError after the timeout."""
        deadline = time.monotonic() + timeout
        while True:
            with contextlib.suppress(DaemonError):
                states = self.states()
                if len(states) == len(self.nodes) and set(states.values()) == {"idle"}:
                    return
            if time.monotonic() > deadline:
                raise DaemonError(f"nodes are not idle after {timeout:.0f} s: {self.states()}")
            time.sleep(0.1)

    def cancel_all(self, timeout: float = PATIENCE_S) -> None:
        """Cancel every job and wait until the queue is empty."""
        deadline = time.monotonic() + timeout
        while queued := self.queue():
            if time.monotonic() > deadline:
                raise DaemonError(f"jobs do not end: {queued}")
            self.command("scancel", *(str(job.id) for job in queued))
            time.sleep(0.2)

    def repair(self) -> None:
        """An empty queue, and every node idle."""
        self.cancel_all()
        for name, state in self.states().items():
            if not self.daemons.is_running(f"slurmd.{name}"):
                self.start_node(name)
            if state != "idle":
                # One that is back by itself meanwhile takes no such word.
                with contextlib.suppress(DaemonError):
                    self.command("scontrol", "update", f"nodename={name}", "state=resume")
        self.wait_idle()


@contextlib.contextmanager
def running_cluster(count: int = 4, *, accounting: bool | None = None) -> Iterator[Cluster]:
    """A cluster of `count` nodes, stopped in the end whatever happens.

    Waits for another one on this machine to be stopped. Raises ClusterUnavailableError where none
    can be had, DaemonError when it does not come up.
    """
    require_machine()
    with LOCK.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _clear(ROOT)
        began = time.monotonic()
        daemons = Daemons(ROOT)
        names = [f"n{number}" for number in range(1, count + 1)]
        cluster = Cluster(ROOT, names, daemons)
        cluster.accounting = _can_account() if accounting is None else accounting
        try:
            _bring_up(cluster)
            cluster.seconds = time.monotonic() - began
            yield cluster
        finally:
            with contextlib.suppress(DaemonError, subprocess.TimeoutExpired):
                cluster.cancel_all()
            daemons.stop_all()
            _clear(ROOT)


def require_machine() -> None:
    """Raise ClusterUnavailableError, with the reason, where no cluster can be brought up."""
    missing = [name for name in _NEEDED if shutil.which(name) is None]
    if missing:
        raise ClusterUnavailableError(
            f"SLURM is not installed ({', '.join(missing)} missing); on Debian:"
            f" apt-get install --no-install-recommends {PACKAGES}"
        )
    if os.geteuid() != 0:
        raise ClusterUnavailableError("your own SLURM needs root: it is set up in /etc/slurm")
    present = SYSTEM / "slurm.conf"
    if present.exists() and not (present.is_symlink() and present.readlink().parent == ROOT):
        raise ClusterUnavailableError(f"{present} is there: this machine belongs to a cluster")


def _can_account() -> bool:
    return all(shutil.which(name) for name in _FOR_ACCOUNTING)


def _bring_up(cluster: Cluster) -> None:
    root = cluster.root
    for folder in ("log", "state", "spool", "munge"):
        (root / folder).mkdir(parents=True)
    root.chmod(0o755)
    make_devices(root / "gpus")
    ports = free_ports(list(cluster.nodes))
    hold = cluster.holds_to_memory
    (root / "slurm.conf").write_text(
        slurm_conf(root, ports, accounting=cluster.accounting, hold=hold)
    )
    (root / "gres.conf").write_text(gres_conf(root, ports))
    (root / "cgroup.conf").write_text(cgroup_conf() if hold else "")
    SYSTEM.mkdir(exist_ok=True)
    for name in ("slurm.conf", "gres.conf", "cgroup.conf"):
        (SYSTEM / name).unlink(missing_ok=True)
        (SYSTEM / name).symlink_to(root / name)
    _start_munge(root, cluster.daemons)
    if cluster.accounting:
        _start_accounting(root, ports, cluster)
    cluster.daemons.start("slurmctld", ["slurmctld", "-D"])
    for name in cluster.nodes:
        cluster.start_node(name)
    cluster.wait_idle()


def _start_munge(root: Path, daemons: Daemons) -> None:
    key = root / "munge" / "key"
    key.touch(0o600)
    key.write_bytes(os.urandom(1024))
    socket = root / "munge" / "socket"
    argv = ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={socket}"]
    argv += [f"--pid-file={root}/munged.pid", f"--log-file={root}/log/munged.log"]
    argv += [f"--seed-file={root}/munge/seed", "--num-threads=2"]
    daemons.start("munged", argv)
    daemons.wait_for("munged", socket.exists, PATIENCE_S)


def _start_accounting(root: Path, ports: Ports, cluster: Cluster) -> None:
    folder, socket = root / "database", root / "database.socket"
    install = ["mysql_install_db", "--no-defaults", "--user=root", f"--datadir={folder}"]
    install += ["--auth-root-authentication-method=socket", "--skip-test-db"]
    cluster.command(*install)
    argv = ["mariadbd", "--no-defaults", "--user=root", f"--datadir={folder}"]
    argv += [f"--socket={socket}", f"--pid-file={root}/mariadbd.pid", "--skip-networking"]
    argv += ["--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0"]
    client = ["--no-defaults", f"--socket={socket}", "-uroot"]
    daemons = cluster.daemons
    daemons.start("mariadbd", argv)
    daemons.wait_for("mariadbd", lambda: _succeeds("mysqladmin", *client, "ping"), PATIENCE_S)
    cluster.command("mysql", *client, "-e", "create database slurm_acct_db")
    conf = root / "slurmdbd.conf"
    conf.touch(0o600)
    conf.write_text(slurmdbd_conf(root, ports))
    (SYSTEM / "slurmdbd.conf").unlink(missing_ok=True)
    (SYSTEM / "slurmdbd.conf").symlink_to(conf)
    cluster.start_accounting()
    user = os.environ.get("USER") or "root"
    for words in (
        ("cluster", "agentc"),
        ("account", "default", "cluster=agentc"),
        ("user", user, "account=default"),
    ):
        cluster.command("sacctmgr", "-i", "-n", "add", *words)


def _succeeds(*words: str) -> bool:
    return (
        subprocess.run(words, capture_output=True, check=False, timeout=PATIENCE_S).returncode == 0
    )


def _clear(root: Path) -> None:
    """Remove what an earlier cluster left: processes, links in /etc/slurm, its folder, and the
    control groups of its nodes."""
    end_recorded(root)
    for name in ("slurm.conf", "gres.conf", "cgroup.conf", "slurmdbd.conf"):
        link = SYSTEM / name
        if link.is_symlink() and link.readlink().parent == root:
            link.unlink()
    for folder in CONTROL_GROUPS.glob("*/slurm_n[0-9]*"):
        # Deepest first: each is empty once those in it are gone, and its files are the kernel's.
        for inner in sorted(folder.rglob("*"), reverse=True):
            if inner.is_dir():
                with contextlib.suppress(OSError):
                    inner.rmdir()
        with contextlib.suppress(OSError):
            folder.rmdir()
    shutil.rmtree(root, ignore_errors=True)


def main(argv: Sequence[str] | None = None) -> int:
    """0 when it worked; for `run` the exit status of the command."""
    parser = argparse.ArgumentParser(prog="tests.slurm.cluster")
    parser.add_argument("action", choices=("up", "down", "run"))
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--no-accounting", action="store_true", help="without slurmdbd")
    parser.add_argument("command", nargs="*", help="after `--`, for `run`")
    options = parser.parse_args(argv)
    accounting = False if options.no_accounting else None
    try:
        if options.action == "run":
            with running_cluster(options.nodes, accounting=accounting) as cluster:
                print(f"{len(cluster.nodes)} nodes in {cluster.seconds:.1f} s", file=sys.stderr)
                return subprocess.run(options.command, check=False).returncode
        if options.action == "up":
            return _keep(options.nodes, accounting)
        return _end_keeper()
    except (ClusterUnavailableError, DaemonError) as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1


def _keep(count: int, accounting: bool | None) -> int:
    """Leave a process behind that owns the cluster until `down`; return when it is up."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        os.close(read)
        code = 1
        with contextlib.suppress(SystemExit), os.fdopen(write, "w") as told:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            try:
                with running_cluster(count, accounting=accounting) as cluster:
                    (ROOT / "keeper.pid").write_text(str(os.getpid()))
                    told.write(f"{len(cluster.nodes)} nodes in {cluster.seconds:.1f} s\n")
                    told.close()
                    while True:
                        signal.pause()
            except (ClusterUnavailableError, DaemonError) as error:
                told.write(f"cluster: {error}\n")
        os._exit(code)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    print(text, end="")
    return 0 if " nodes in " in text else 1


def _end_keeper() -> int:
    try:
        pid = int((ROOT / "keeper.pid").read_text())
        os.kill(pid, signal.SIGTERM)
    except (OSError, ValueError):
        print("no cluster is up")
        return 1
    with LOCK.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    return 0


if __name__ == "__main__":
    sys.exit(main())
