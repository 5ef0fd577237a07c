"""The files that SLURM reads on the test cluster: several nodes on one machine, without systemd;
jobs are held to their memory where control groups can be made. cluster.py writes them and starts
the daemons."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CPUS, MEMORY_MB, GPUS = 8, 64_000, 2
"""What each node claims to have. Nothing holds jobs to these CPUs but their own threads."""
CONTROL_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports of the daemons on this machine."""

    controller: int
    accounting: int
    nodes: Mapping[str, int]


def can_hold_to_memory() -> bool:
    """Whether control groups (version 1, each controller mounted) can be made on this machine."""
    folder = CONTROL_GROUPS / "memory" / f"agentc-{os.getpid()}"
    try:
        folder.mkdir()
        folder.rmdir()
    except OSError:
        return False
    return (CONTROL_GROUPS / "freezer").is_dir()


def cgroup_conf() -> str:
    """cgroup.conf: a job that uses more memory than it has asked for is killed by the kernel."""
    return (
        f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={CONTROL_GROUPS}\nConstrainRAMSpace=yes\n"
        "AllowedRAMSpace=100\n"
    )


def slurm_conf(root: Path, ports: Ports, *, accounting: bool, hold: bool) -> str:
    """slurm.conf (`hold`: jobs to their memory): quick to notice what happens, and with more CPUs
    and memory than there are."""
    host = socket.gethostname().split(".")[0]
    lines = [
        "ClusterName=agentc",
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmctldPort={ports.controller}",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        # A job that is queued again starts when its old credential is void: two minutes by default.
        f"AuthInfo=socket={root}/munge/socket,cred_expire=15",
        "CredType=cred/munge",
        f"StateSaveLocation={root}/state",
        f"SlurmdSpoolDir={root}/spool/%n",
        f"SlurmctldPidFile={root}/slurmctld.pid",
        f"SlurmdPidFile={root}/slurmd.%n.pid",
        f"SlurmctldLogFile={root}/log/slurmctld.log",
        f"SlurmdLogFile={root}/log/slurmd.%n.log",
        # No systemd and no right to make cgroups is needed. By their parents (linuxproc) processes
        # would be lost whose parent was ended first.
        "ProctrackType=proctrack/pgid",
        "TaskPlugin=task/cgroup" if hold else "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/linux",
        "JobAcctGatherFrequency=2",
        "SwitchType=switch/none",
        "MpiDefault=none",
        "ReturnToService=2",
        "SlurmdParameters=config_overrides",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "SchedulerType=sched/backfill",
        "SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,"
        "bf_resolution=1,batch_sched_delay=0,defer_batch=0,requeue_setup_env_fail",
        "PreemptType=preempt/partition_prio",
        "PreemptMode=REQUEUE",
        "MinJobAge=300",
        "KillWait=5",
        "InactiveLimit=0",
        "SlurmdTimeout=10",
        "SlurmctldTimeout=10",
        "BatchStartTimeout=10",
        "MessageTimeout=20",
        "UnkillableStepTimeout=60",
        "JobRequeue=1",
        "GresTypes=gpu",
    ]
    if accounting:
        lines += [
            "AccountingStorageType=accounting_storage/slurmdbd",
            "AccountingStorageHost=127.0.0.1",
            f"AccountingStoragePort={ports.accounting}",
            f"AccountingStoragePass={root}/munge/socket",
            "AccountingStorageTRES=gres/gpu",
            "AccountingStoreFlags=job_comment",
        ]
    else:
        lines.append("AccountingStorageType=accounting_storage/none")
    shape = f"CPUs={CPUS} Boards=1 SocketsPerBoard=1 CoresPerSocket={CPUS} ThreadsPerCore=1"
    lines += [
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} {shape} "
        f"RealMemory={MEMORY_MB} Gres=gpu:fake:{GPUS} State=UNKNOWN"
        for name, port in ports.nodes.items()
    ]
    two = ",".join(list(ports.nodes)[:2])
    lines += [
        "PartitionName=main Nodes=ALL Default=YES MaxTime=7-00:00:00 PriorityTier=10 "
        "PreemptMode=OFF State=UP",
        # Jobs of `low` are preempted by jobs of `main`, and queued again.
        "PartitionName=low Nodes=ALL MaxTime=7-00:00:00 PriorityTier=1 PreemptMode=REQUEUE "
        "State=UP",
        f"PartitionName=short Nodes={two} MaxTime=00:10:00 PriorityTier=10 PreemptMode=OFF "
        "State=UP",
    ]
    return "\n".join(lines) + "\n"


def gres_conf(root: Path, ports: Ports) -> str:
    """gres.conf: each node has the same few fake GPUs."""
    devices = f"{root}/gpus/gpu[0-{GPUS - 1}]"
    return "".join(f"NodeName={name} Name=gpu Type=fake File={devices}\n" for name in ports.nodes)


def slurmdbd_conf(root: Path, ports: Ports) -> str:
    """slurmdbd.conf, beside a MariaDB that listens on a socket alone."""
    host = socket.gethostname().split(".")[0]
    return "\n".join(
        [
            "AuthType=auth/munge",
            f"AuthInfo=socket={root}/munge/socket",
            f"DbdHost={host}",
            "DbdAddr=127.0.0.1",
            f"DbdPort={ports.accounting}",
            "SlurmUser=root",
            f"LogFile={root}/log/slurmdbd.log",
            f"PidFile={root}/slurmdbd.pid",
            "StorageType=accounting_storage/mysql",
            "StorageHost=localhost",
            "StorageUser=root",
            "StorageLoc=slurm_acct_db",
            "",
        ]
    )


def make_devices(folder: Path) -> None:
    """Character devices that stand for GPUs: SLURM takes nothing else for one. They are
    /dev/null under another name."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(GPUS):
        os.mknod(folder / f"gpu{number}", stat.S_IFCHR | 0o666, os.makedev(1, 3))


def free_ports(names: list[str]) -> Ports:
    """Ports that nobody uses at the moment."""
    sockets = [socket.socket() for _ in range(2 + len(names))]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        numbers = [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
    return Ports(numbers[0], numbers[1], dict(zip(names, numbers[2:], strict=True)))
